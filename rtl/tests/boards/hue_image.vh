// The image `wide` with small tables, for the benches of the adapters: small tables compile and reset faster.
`define HUE_IMAGE_CLOCK_KHZ 250000
.ClockKhz(`HUE_IMAGE_CLOCK_KHZ), .BusBytes(64), .Kinds(2), .Layout(2), .Planes(4), .Nets(16), .SelectRows(16), .AttachRows(16),
.HopRows(64), .Level0Words(64), .Level1Words(16), .Level2Words(16), .Level3Words(16), .ImageName(128'h68636e6562)
