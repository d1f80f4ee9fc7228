# Sourced by a NetFPGA-PLUS project's tcl in place of `read_verilog "./hdl/nf_datapath.v"`; scripts/boards wrote this folder.
set hue_folder [file dirname [file normalize [info script]]]
set hue_files [split [string trim [read [set hue_list [open $hue_folder/hdl/files.txt]]]] "\n"]
close $hue_list
foreach hue_file $hue_files {
  read_verilog -sv $hue_folder/hdl/$hue_file
}
set_property include_dirs [concat [get_property include_dirs [current_fileset]] $hue_folder/hdl] [current_fileset]
