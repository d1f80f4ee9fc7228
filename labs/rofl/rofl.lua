-- Dissector of packets with flat labels (hueplane, decision 0070) for Wireshark and tshark.
--   tshark -X lua_script:labs/rofl/rofl.lua -r FILE
-- Packets of other versions are marked as malformed. Payloads go to the dissector of their EtherType.

local rofl = Proto("rofl", "Routing on Flat Labels")
local f = {
  version = ProtoField.uint8("rofl.version", "Version", base.DEC, nil, 0xf0),
  link = ProtoField.bool("rofl.flags.link", "Between neighbours", 8, nil, 0x01),
  closest = ProtoField.bool("rofl.flags.closest", "For the closest label", 8, nil, 0x02),
  label_bytes = ProtoField.uint8("rofl.label_bytes", "Bytes of a label"),
  budget = ProtoField.uint8("rofl.budget", "Hop budget"),
  route_count = ProtoField.uint8("rofl.route_count", "Labels of the source route"),
  type = ProtoField.uint16("rofl.type", "Payload", base.HEX),
  length = ProtoField.uint16("rofl.length", "Bytes of the payload"),
  destination = ProtoField.bytes("rofl.destination", "Destination"),
  source = ProtoField.bytes("rofl.source", "Source"),
  route = ProtoField.bytes("rofl.route", "Source route"),
}
rofl.fields = f
local wrong = ProtoExpert.new("rofl.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
rofl.experts = { wrong }
local payloads = DissectorTable.get("ethertype")

function rofl.dissector(buffer, packet, root)
  packet.cols.protocol = "ROFL"
  local tree = root:add(rofl, buffer())
  if buffer:len() < 8 then
    tree:add_proto_expert_info(wrong)
    return
  end
  tree:add(f.version, buffer(0, 1))
  tree:add(f.link, buffer(0, 1))
  tree:add(f.closest, buffer(0, 1))
  tree:add(f.label_bytes, buffer(1, 1))
  tree:add(f.budget, buffer(2, 1))
  tree:add(f.route_count, buffer(3, 1))
  tree:add(f.type, buffer(4, 2))
  tree:add(f.length, buffer(6, 2))
  local size, count, length = buffer(1, 1):uint(), buffer(3, 1):uint(), buffer(6, 2):uint()
  local header = 8 + (2 + count) * size
  local sound = buffer(0, 1):uint() >= 0x10 and buffer(0, 1):uint() < 0x20 and size >= 4 and size <= 16 and count <= 4
  if not sound or header + length > buffer:len() then
    tree:add_proto_expert_info(wrong)
    packet.cols.info = "malformed"
    return
  end
  local function label(place)
    return buffer(8 + place * size, size)
  end
  tree:add(f.destination, label(0))
  tree:add(f.source, label(1))
  for place = 2, 1 + count do
    tree:add(f.route, label(place))
  end
  tree:append_text(", " .. tostring(label(1):bytes()) .. " to " .. tostring(label(0):bytes()))
  packet.cols.info = tostring(label(1):bytes()) .. " -> " .. tostring(label(0):bytes())
  if length > 0 then
    payloads:try(buffer(4, 2):uint(), buffer(header, length):tvb(), packet, root)
  end
end

payloads:add(0x88b5, rofl)
