// Nothing: see box_250mhz_address_map_inst.vh. OpenNIC's build reads a file of this name.
