// Nothing: the box has one register space, the card's, and user_plugin_250mhz_inst.vh connects it directly.
// OpenNIC's box_250mhz includes a file of this name.
