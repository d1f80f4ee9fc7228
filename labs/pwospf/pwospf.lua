-- Dissector of PW-OSPF for Wireshark and tshark. Theirs for OSPF takes its packets for malformed ones of OSPF version 2.
--   tshark -X lua_script:labs/pwospf/pwospf.lua -r FILE
-- Packets that are not PW-OSPF (other types, hellos of another length) go to the dissector of OSPF.

local pwospf = Proto("pwospf", "PW-OSPF")
local types = { [1] = "hello", [4] = "LSU" }
local f = {
  version = ProtoField.uint8("pwospf.version", "Version"),
  type = ProtoField.uint8("pwospf.type", "Type", base.DEC, types),
  length = ProtoField.uint16("pwospf.length", "Length"),
  router = ProtoField.ipv4("pwospf.router", "Router id"),
  area = ProtoField.ipv4("pwospf.area", "Area"),
  checksum = ProtoField.uint16("pwospf.checksum", "Checksum", base.HEX),
  checksum_ok = ProtoField.bool("pwospf.checksum.ok", "Checksum is right"),
  auth = ProtoField.uint16("pwospf.auth", "Kind of authentication"),
  mask = ProtoField.ipv4("pwospf.hello.mask", "Mask"),
  interval = ProtoField.uint16("pwospf.hello.interval", "Interval (s)"),
  sequence = ProtoField.uint16("pwospf.lsu.sequence", "Sequence number"),
  ttl = ProtoField.uint16("pwospf.lsu.ttl", "Hops left"),
  count = ProtoField.uint32("pwospf.lsu.count", "Advertisements"),
  subnet = ProtoField.ipv4("pwospf.link.subnet", "Subnet"),
  link_mask = ProtoField.ipv4("pwospf.link.mask", "Mask"),
  link_router = ProtoField.ipv4("pwospf.link.router", "Router"),
}
pwospf.fields = f
local wrong = ProtoExpert.new("pwospf.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
pwospf.experts = { wrong }
local ospf = Dissector.get("ospf")

-- Internet checksum (RFC 1071) without the 8 bytes of authentication.
local function checksum_is_right(buffer)
  local sum = 0
  for at = 0, buffer:len() - 1, 2 do
    if at < 16 or at >= 24 then
      local low = at + 1 < buffer:len() and buffer(at + 1, 1):uint() or 0
      sum = sum + buffer(at, 1):uint() * 256 + low
    end
  end
  while sum > 0xffff do
    sum = sum % 0x10000 + math.floor(sum / 0x10000)
  end
  return sum == 0xffff
end

local function is_pwospf(buffer)
  if buffer:len() < 24 or buffer(0, 1):uint() ~= 2 then
    return false
  end
  local kind, length = buffer(1, 1):uint(), buffer:len()
  if kind == 1 then
    return length == 32
  end
  -- An LSU of OSPF begins with a number of LSAs, and is not as long as this.
  return kind == 4 and length >= 32 and buffer(28, 4):uint() * 12 + 32 == length
end

function pwospf.dissector(buffer, packet, root)
  if not is_pwospf(buffer) then
    return ospf:call(buffer, packet, root)
  end
  packet.cols.protocol = "PW-OSPF"
  local tree = root:add(pwospf, buffer())
  local kind = buffer(1, 1):uint()
  tree:add(f.version, buffer(0, 1))
  tree:add(f.type, buffer(1, 1))
  tree:add(f.length, buffer(2, 2))
  tree:add(f.router, buffer(4, 4))
  tree:add(f.area, buffer(8, 4))
  tree:add(f.checksum, buffer(12, 2))
  local right = checksum_is_right(buffer)
  tree:add(f.checksum_ok, buffer(12, 2), right):set_generated()
  tree:add(f.auth, buffer(14, 2))
  if not right or buffer(2, 2):uint() ~= buffer:len() or buffer(14, 2):uint() ~= 0 then
    tree:add_proto_expert_info(wrong)
  end
  local what = types[kind] .. " of " .. tostring(buffer(4, 4):ipv4())
  if kind == 1 then
    tree:add(f.mask, buffer(24, 4))
    tree:add(f.interval, buffer(28, 2))
    packet.cols.info = what .. ", every " .. buffer(28, 2):uint() .. " s"
    return
  end
  tree:add(f.sequence, buffer(24, 2))
  tree:add(f.ttl, buffer(26, 2))
  tree:add(f.count, buffer(28, 4))
  for at = 32, buffer:len() - 12, 12 do
    local link = tree:add(buffer(at, 12), "Link")
    link:add(f.subnet, buffer(at, 4))
    link:add(f.link_mask, buffer(at + 4, 4))
    link:add(f.link_router, buffer(at + 8, 4))
  end
  packet.cols.info = what .. ", sequence " .. buffer(24, 2):uint() .. ", " .. buffer(28, 4):uint() .. " links"
end

DissectorTable.get("ip.proto"):add(89, pwospf)
