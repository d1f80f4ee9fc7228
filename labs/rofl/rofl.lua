-- Dissector of packets with flat labels (hueplane, decision 0070) for Wireshark and tshark.
--   tshark -X lua_script:labs/rofl/rofl.lua -r FILE
-- Packets of other versions are marked as malformed. Payloads go to the dissector of their EtherType; messages of
-- `hueplane rofl-ring` (decision 0071) have 0x88b6.

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
local label_bytes = 0 -- of the packet whose payload is next

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
    label_bytes = size
    payloads:try(buffer(4, 2):uint(), buffer(header, length):tvb(), packet, root)
  end
end

payloads:add(0x88b5, rofl)

local kinds = {
  [1] = "hello", [2] = "host", [3] = "links", [4] = "want", [5] = "have", [6] = "gone", [7] = "join", [8] = "ask", [9] = "answer",
  [10] = "leave",
}
local ring = Proto("rofl_ring", "Ring of flat labels")
local r = {
  kind = ProtoField.uint8("rofl.ring.kind", "Message", base.DEC, kinds),
  count = ProtoField.uint8("rofl.ring.count", "Items"),
  interval = ProtoField.uint16("rofl.ring.interval", "Milliseconds between hellos"),
  hold = ProtoField.uint16("rofl.ring.hold", "Tenths of a second that the label is here"),
  age = ProtoField.uint16("rofl.ring.age", "Age in tenths of a second"),
  flags = ProtoField.uint16("rofl.ring.flags", "Flags", base.HEX),
  digest = ProtoField.uint64("rofl.ring.digest", "Digest of all links", base.HEX),
  sequence = ProtoField.uint64("rofl.ring.sequence", "Sequence number"),
  origin = ProtoField.bytes("rofl.ring.origin", "Router whose links these are"),
  label = ProtoField.bytes("rofl.ring.label", "Label"),
  asker = ProtoField.bytes("rofl.ring.asker", "On behalf of"),
  before = ProtoField.bytes("rofl.ring.before", "Before it"),
  behind = ProtoField.bytes("rofl.ring.behind", "Behind it"),
  router = ProtoField.bytes("rofl.ring.router", "Its router"),
}
ring.fields = r
local wrong_message = ProtoExpert.new("rofl.ring.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
ring.experts = { wrong_message }
-- Per kind: the meaning of the value, the fields of a fixed length, and those of an item.
local shapes = {
  [1] = { r.interval, { r.digest }, { r.label } },
  [2] = { r.hold, {}, {} },
  [3] = { r.age, { r.sequence, r.origin }, { r.label } },
  [4] = { nil, {}, { r.label, r.router } },
  [5] = { nil, {}, { r.label } },
  [6] = { nil, {}, { r.label } },
  [7] = { r.flags, { r.label }, {} },
  [8] = { nil, { r.label, r.asker }, {} },
  [9] = { r.flags, { r.label, r.asker, r.before, r.router }, { r.behind, r.router } },
  [10] = { r.flags, { r.label, r.behind, r.router }, {} },
}

function ring.dissector(buffer, packet, root)
  packet.cols.protocol = "ROFL ring"
  local tree = root:add(ring, buffer())
  local function refuse()
    tree:add_proto_expert_info(wrong_message)
    packet.cols.info = "malformed"
  end
  local shape = buffer:len() >= 4 and shapes[buffer(0, 1):uint()]
  if not shape then
    return refuse()
  end
  local count, place = buffer(1, 1):uint(), 4
  local function bytes_of(field)
    return (field == r.digest or field == r.sequence) and 8 or label_bytes
  end
  local total = 4
  for _, field in ipairs(shape[2]) do
    total = total + bytes_of(field)
  end
  if total + count * #shape[3] * label_bytes ~= buffer:len() then
    return refuse()
  end
  tree:add(r.kind, buffer(0, 1))
  tree:add(r.count, buffer(1, 1))
  if shape[1] then
    tree:add(shape[1], buffer(2, 2))
  end
  local function add(field)
    tree:add(field, buffer(place, bytes_of(field)))
    place = place + bytes_of(field)
  end
  for _, field in ipairs(shape[2]) do
    add(field)
  end
  for _ = 1, count do
    for _, field in ipairs(shape[3]) do
      add(field)
    end
  end
  packet.cols.info = kinds[buffer(0, 1):uint()]
end

payloads:add(0x88b6, ring)
