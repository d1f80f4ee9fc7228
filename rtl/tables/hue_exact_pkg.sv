// Hash functions of hue_exact_table: the row of a key in each bank.
//
// Place: hue_exact_table; the driver computes the same (crates/tables/src/cuckoo.rs). A key is a polynomial over GF(2),
// bit i the coefficient of x^i, and its row in a bank is the remainder modulo the bank's polynomial (a CRC with initial value 0):
//
//   rows a bank   bank 0   bank 1   bank 2   bank 3
//   256           0x11d    0x177    0x1f3    0x169
//   512           0x211    0x259    0x331    0x299
//   1024          0x409    0x40f    0x50d    0x7f9
//   2048          0x805    0x925    0x88d    0x82d
//   4096          0x1053   0x145b   0x104d   0x146b
//
// They are the minimal polynomials of a, a^3, a^5 and a^7, where a is a root of bank 0's. So keys that differ only within a
// run of as many bits as an index has are in different rows of every bank, and two keys that collide in all four banks
// differ in at least 9 bits: the four indices together are the check bits of a BCH code (Bose, Ray-Chaudhuri 1960).
//
// Key 0x100000000ca5 (port 5, MAC address 02:00:00:00:01:94) is in rows 0x1b2, 0x1f7, 0x15c and 0x09b of banks of 512
// rows; hue_exact_table and the driver's tests check it.
package hue_exact_pkg;
  localparam int unsigned KeyBitsMax = 64;
  localparam int unsigned IndexBitsMax = 12;

  // Fewer than 8 bits are for proofs only.
  function automatic logic [IndexBitsMax:0] polynomial(int unsigned bits, int unsigned bank);
    case (bits)
      32'd8:   return bank == 0 ? 13'h11d : bank == 1 ? 13'h177 : bank == 2 ? 13'h1f3 : 13'h169;
      32'd9:   return bank == 0 ? 13'h211 : bank == 1 ? 13'h259 : bank == 2 ? 13'h331 : 13'h299;
      32'd10:  return bank == 0 ? 13'h409 : bank == 1 ? 13'h40f : bank == 2 ? 13'h50d : 13'h7f9;
      32'd11:  return bank == 0 ? 13'h805 : bank == 1 ? 13'h925 : bank == 2 ? 13'h88d : 13'h82d;
      32'd12:  return bank == 0 ? 13'h1053 : bank == 1 ? 13'h145b : bank == 2 ? 13'h104d : 13'h146b;
      default: return (13'd1 << bits) | 13'(bank);
    endcase
  endfunction

  // The key bits whose XOR is bit `at` of the index.
  function automatic logic [KeyBitsMax-1:0] summands(int unsigned bits, int unsigned bank, logic [3:0] at);
    logic [IndexBitsMax:0] power;
    logic [KeyBitsMax-1:0] found;
    power = 13'd1;
    for (int unsigned i = 0; i < KeyBitsMax; i++) begin
      found[i] = power[at];
      power = power << 1;
      if (power[bits]) power = power ^ polynomial(bits, bank);
    end
    return found;
  endfunction

  function automatic logic [IndexBitsMax-1:0] index_of(int unsigned bits, int unsigned bank, logic [KeyBitsMax-1:0] key);
    logic [IndexBitsMax-1:0] index;
    index = '0;
    for (int unsigned i = 0; i < IndexBitsMax; i++) if (i < bits) index[i] = ^(key & summands(bits, bank, 4'(i)));
    return index;
  endfunction
endpackage
