# Sourced by OpenNIC's script/build.tcl in the folder that -user_plugin names, which scripts/boards wrote.
set hue_files [split [string trim [read [set hue_list [open hdl/files.txt]]]] "\n"]
close $hue_list
foreach hue_file $hue_files {
  read_verilog -quiet -sv hdl/$hue_file
}
# build.tcl sets the include folders afterwards, from this list.
lappend include_dirs [file normalize hdl]
