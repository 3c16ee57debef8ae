-- TFRC over UDP, version 1, as docs/wire/tfrc.md draws it, the packets of RAP and TFRCP (docs/wire/acks.md), the
-- segments of TCP's machines and plain datagrams (docs/wire/tcp.md): a dissector for Wireshark and tshark.
--
-- Finds its datagrams on any UDP port by magic and version; "Decode As" by port works too.

local proto = Proto("paceline_tfrc", "TFRC over UDP (Paceline)")

local MAGIC = 0x5054
local VERSION = 1
local REQUEST, ACCEPT, REFUSE, CLOSE, DATA, FEEDBACK, SINGLE, ACK = 1, 2, 3, 4, 5, 6, 7, 8
local SEGMENT, SEGMENT_ACK, PLAIN = 9, 10, 11
local SHORT, LONG, SUBFLOW, FRAME = 20, 44, 4, 4
local SINGLE_LENGTH, ACK_LENGTH = 16, 28
local SEGMENT_LENGTH, WINDOW, BLOCK = 16, 4, 8
local NO_NUMBER = 0xffffffff
local ECN_FLAG, SUBFLOW_FLAG, FRAME_FLAG, LAST_FLAG = 0x01, 0x02, 0x04, 0x08
local SEGMENT_FLAGS, SEGMENT_ACK_FLAGS, WINDOW_FLAG, BLOCKS_FLAGS = 0x7c, 0x7f, 0x10, 0x03
local TICK = 256e-9 -- seconds
local NO_LIMIT = 0xffffffff

local types = {
  [REQUEST] = "Request",
  [ACCEPT] = "Accept",
  [REFUSE] = "Refuse",
  [CLOSE] = "Close",
  [DATA] = "Data",
  [FEEDBACK] = "Feedback",
  [SINGLE] = "Packet",
  [ACK] = "Acknowledgement",
  [SEGMENT] = "Segment",
  [SEGMENT_ACK] = "Acknowledgement of segments",
  [PLAIN] = "Datagram",
}
local lengths = {
  [REQUEST] = SHORT,
  [ACCEPT] = SHORT,
  [REFUSE] = SHORT,
  [CLOSE] = SHORT,
  [DATA] = SHORT,
  [FEEDBACK] = LONG,
  [SINGLE] = SINGLE_LENGTH,
  [ACK] = ACK_LENGTH,
  [SEGMENT] = SEGMENT_LENGTH,
  [SEGMENT_ACK] = SEGMENT_LENGTH,
  [PLAIN] = SEGMENT_LENGTH,
}
local carries = { [DATA] = true, [SINGLE] = true, [SEGMENT] = true, [PLAIN] = true }
local reasons = {
  [0] = "unspecified",
  [1] = "done",
  [2] = "busy",
  [3] = "unknown connection",
  [4] = "packet size",
}

local f = {
  magic = ProtoField.uint16("paceline_tfrc.magic", "Magic", base.HEX),
  version = ProtoField.uint8("paceline_tfrc.version", "Version", base.DEC, nil, 0xf0),
  type = ProtoField.uint8("paceline_tfrc.type", "Type", base.DEC, types, 0x0f),
  flags = ProtoField.uint8("paceline_tfrc.flags", "Flags", base.HEX),
  ecn = ProtoField.uint8("paceline_tfrc.flags.ecn", "Data will be ECN-capable", base.DEC, nil, 0x01),
  several = ProtoField.uint8("paceline_tfrc.flags.several", "Names one of several connections", base.DEC, nil, 0x02),
  syn = ProtoField.uint8("paceline_tfrc.flags.syn", "SYN", base.DEC, nil, 0x04),
  push = ProtoField.uint8("paceline_tfrc.flags.push", "Last of what was written at once", base.DEC, nil, 0x08),
  cwr = ProtoField.uint8("paceline_tfrc.flags.cwr", "Congestion window reduced", base.DEC, nil, 0x10),
  ece = ProtoField.uint8("paceline_tfrc.flags.ece", "Congestion was experienced", base.DEC, nil, 0x08),
  segment_ece = ProtoField.uint8("paceline_tfrc.flags.segment_ece", "Congestion was experienced", base.DEC, nil, 0x20),
  ack_cwr = ProtoField.uint8("paceline_tfrc.flags.ack_cwr", "Congestion window reduced", base.DEC, nil, 0x20),
  ae = ProtoField.uint8("paceline_tfrc.flags.ae", "Accurate ECN", base.DEC, nil, 0x40),
  windowed = ProtoField.uint8("paceline_tfrc.flags.window", "Has a window", base.DEC, nil, 0x10),
  blocks = ProtoField.uint8("paceline_tfrc.flags.blocks", "Blocks", base.DEC, nil, 0x03),
  next = ProtoField.uint32("paceline_tfrc.next", "Next segment expected"),
  window = ProtoField.uint32("paceline_tfrc.window", "Window (segments)"),
  block_start = ProtoField.uint32("paceline_tfrc.block_start", "Block from"),
  block_end = ProtoField.uint32("paceline_tfrc.block_end", "Block to, exclusive"),
  framed = ProtoField.uint8("paceline_tfrc.flags.frame", "Says which part of a frame it is", base.DEC, nil, 0x04),
  last = ProtoField.uint8("paceline_tfrc.flags.last", "Last packet of a frame", base.DEC, nil, 0x08),
  captured = ProtoField.uint32("paceline_tfrc.captured", "Frame captured (256 ns)"),
  place = ProtoField.uint16("paceline_tfrc.place", "Place among the flow's connections"),
  opening = ProtoField.uint16("paceline_tfrc.opening", "Openings of the place before"),
  connection = ProtoField.uint32("paceline_tfrc.connection", "Connection", base.DEC_HEX),
  nonce = ProtoField.uint64("paceline_tfrc.nonce", "Nonce", base.HEX),
  packet_size = ProtoField.uint16("paceline_tfrc.packet_size", "Packet size (bytes)"),
  limit = ProtoField.uint32("paceline_tfrc.limit", "Rate limit (bytes/s)"),
  reason = ProtoField.uint16("paceline_tfrc.reason", "Reason", base.DEC, reasons),
  reserved = ProtoField.uint16("paceline_tfrc.reserved", "Reserved", base.HEX),
  sequence = ProtoField.uint32("paceline_tfrc.sequence", "Sequence number"),
  timestamp = ProtoField.uint32("paceline_tfrc.timestamp", "Timestamp (256 ns)"),
  rtt = ProtoField.uint32("paceline_tfrc.rtt", "Round-trip time (256 ns)"),
  rtt_s = ProtoField.double("paceline_tfrc.rtt_s", "Round-trip time (s)"),
  payload = ProtoField.uint32("paceline_tfrc.payload", "Payload (bytes)"),
  received_end = ProtoField.uint32("paceline_tfrc.received_end", "One past the highest sequence number received"),
  hole_end = ProtoField.uint32("paceline_tfrc.hole_end", "All have come from here on"),
  hole_start = ProtoField.uint32("paceline_tfrc.hole_start", "None has come from here to there"),
  echo = ProtoField.uint32("paceline_tfrc.echo", "Timestamp echoed (256 ns)"),
  delay = ProtoField.uint32("paceline_tfrc.delay", "Delay since arrival, t_delay (256 ns)"),
  delay_s = ProtoField.double("paceline_tfrc.delay_s", "Delay since arrival, t_delay (s)"),
  received = ProtoField.uint32("paceline_tfrc.received", "Data packets received"),
  marked = ProtoField.uint32("paceline_tfrc.marked", "Data packets received with a congestion mark"),
  receive_rate = ProtoField.double("paceline_tfrc.receive_rate", "Receive rate, X_recv (bytes/s)"),
  loss_event_rate = ProtoField.double("paceline_tfrc.loss_event_rate", "Loss event rate, p"),
}
local fields = {}
for _, field in pairs(f) do
  fields[#fields + 1] = field
end
proto.fields = fields

local malformed =
  ProtoExpert.new("paceline_tfrc.malformed", "Not an encoding of version 1", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

local function complain(tree, why)
  tree:add_proto_expert_info(malformed, why)
end

local function reserved(tree, range)
  tree:add(f.reserved, range)
  if range:uint() ~= 0 then
    complain(tree, "a reserved field is not zero")
  end
end

-- From 0 to most; neither minus zero nor what is no number.
local function within(number, most)
  return number <= most and (number > 0 or 1 / number == math.huge)
end

-- Bytes that name a connection of the flow, at the header's end.
local function more(buffer)
  return bit32.band(buffer(3, 1):uint(), SUBFLOW_FLAG) ~= 0 and SUBFLOW or 0
end

-- Bytes that say which part of a video frame data are, behind those.
local function part(buffer)
  return bit32.band(buffer(3, 1):uint(), FRAME_FLAG) ~= 0 and FRAME or 0
end

local function subflow(buffer, tree, at)
  if more(buffer) == 0 then
    return ""
  end
  tree:add(f.place, buffer(at, 2))
  tree:add(f.opening, buffer(at + 2, 2))
  return string.format(" of=%d.%d", buffer(at, 2):uint(), buffer(at + 2, 2):uint())
end

local body = {}

body[REQUEST] = function(buffer, tree)
  tree:add(f.nonce, buffer(8, 8))
  tree:add(f.packet_size, buffer(16, 2))
  reserved(tree, buffer(18, 2))
  return string.format("packets of %d bytes", buffer(16, 2):uint())
end

body[ACCEPT] = function(buffer, tree)
  tree:add(f.nonce, buffer(8, 8))
  local limit = buffer(16, 4):uint()
  local item = tree:add(f.limit, buffer(16, 4))
  if limit == NO_LIMIT then
    item:append_text(" (none)")
    return "no limit"
  end
  return string.format("at most %d bytes/s", limit)
end

body[REFUSE] = function(buffer, tree)
  tree:add(f.nonce, buffer(8, 8))
  tree:add(f.reason, buffer(16, 2))
  reserved(tree, buffer(18, 2))
  return reasons[buffer(16, 2):uint()] or string.format("reason %d", buffer(16, 2):uint())
end

body[CLOSE] = body[REFUSE]

body[DATA] = function(buffer, tree)
  tree:add(f.sequence, buffer(8, 4))
  tree:add(f.timestamp, buffer(12, 4))
  tree:add(f.rtt, buffer(16, 4))
  tree:add(f.rtt_s, buffer(16, 4), buffer(16, 4):uint() * TICK):set_generated()
  local of = subflow(buffer, tree, SHORT)
  if part(buffer) > 0 then
    tree:add(f.captured, buffer(SHORT + more(buffer), FRAME))
  end
  local payload = buffer:reported_len() - SHORT - more(buffer) - part(buffer)
  tree:add(f.payload, buffer(0, 0), payload):set_generated()
  return string.format("seq=%d len=%d%s", buffer(8, 4):uint(), payload, of)
end

body[FEEDBACK] = function(buffer, tree)
  tree:add(f.received_end, buffer(8, 4))
  tree:add(f.echo, buffer(12, 4))
  tree:add(f.delay, buffer(16, 4))
  tree:add(f.delay_s, buffer(16, 4), buffer(16, 4):uint() * TICK):set_generated()
  tree:add(f.received, buffer(20, 4))
  tree:add(f.marked, buffer(24, 4))
  tree:add(f.receive_rate, buffer(28, 8))
  tree:add(f.loss_event_rate, buffer(36, 8))
  local of = subflow(buffer, tree, LONG)
  local rate, p = buffer(28, 8):float(), buffer(36, 8):float()
  if not within(rate, math.huge) or rate == math.huge then
    complain(tree, "the receive rate is negative, infinite or no number")
  end
  if not within(p, 1) then
    complain(tree, "the loss event rate is not from 0 to 1")
  end
  return string.format("end=%d X_recv=%.0f p=%.6f%s", buffer(8, 4):uint(), rate, p, of)
end

body[SINGLE] = function(buffer, tree)
  tree:add(f.sequence, buffer(8, 4))
  tree:add(f.timestamp, buffer(12, 4))
  local payload = buffer:len() - SINGLE_LENGTH
  tree:add(f.payload, buffer(0, 0), payload):set_generated()
  if buffer(8, 4):uint() == NO_NUMBER then
    complain(tree, "no packet has this number")
  end
  return string.format("seq=%d len=%d", buffer(8, 4):uint(), payload)
end

body[ACK] = function(buffer, tree)
  tree:add(f.sequence, buffer(8, 4))
  tree:add(f.echo, buffer(12, 4))
  tree:add(f.received_end, buffer(16, 4))
  tree:add(f.hole_end, buffer(20, 4))
  tree:add(f.hole_start, buffer(24, 4))
  local sequence, received_end = buffer(8, 4):uint(), buffer(16, 4):uint()
  local hole_end, hole_start = buffer(20, 4):uint(), buffer(24, 4):uint()
  if sequence >= received_end or hole_end >= received_end or hole_start > hole_end then
    complain(tree, "the numbers of what has come contradict each other")
  end
  return string.format("seq=%d end=%d hole=%d..%d", sequence, received_end, hole_start, hole_end)
end

local function numbered(buffer, tree)
  tree:add(f.sequence, buffer(8, 4))
  tree:add(f.timestamp, buffer(12, 4))
  local payload = buffer:len() - SEGMENT_LENGTH
  tree:add(f.payload, buffer(0, 0), payload):set_generated()
  return string.format("seq=%d len=%d", buffer(8, 4):uint(), payload)
end

body[PLAIN] = numbered

body[SEGMENT] = function(buffer, tree)
  if buffer(8, 4):uint() == NO_NUMBER then
    complain(tree, "no segment has this number")
  end
  return numbered(buffer, tree)
end

-- Bytes of an acknowledgement of segments after its first 16.
local function options(buffer)
  local flags = buffer(3, 1):uint()
  local window = bit32.band(flags, WINDOW_FLAG) ~= 0 and WINDOW or 0
  return window, BLOCK * bit32.band(flags, BLOCKS_FLAGS)
end

body[SEGMENT_ACK] = function(buffer, tree)
  tree:add(f.next, buffer(8, 4))
  tree:add(f.echo, buffer(12, 4))
  local window, blocks = options(buffer)
  if window > 0 then
    tree:add(f.window, buffer(SEGMENT_LENGTH, WINDOW))
    if buffer(SEGMENT_LENGTH, WINDOW):uint() == 0 then
      complain(tree, "a window of no segment")
    end
  end
  local info = string.format("next=%d", buffer(8, 4):uint())
  for at = SEGMENT_LENGTH + window, SEGMENT_LENGTH + window + blocks - 1, BLOCK do
    tree:add(f.block_start, buffer(at, 4))
    tree:add(f.block_end, buffer(at + 4, 4))
    local from, to = buffer(at, 4):uint(), buffer(at + 4, 4):uint()
    if from >= to then
      complain(tree, "a block is empty or ends before it begins")
    end
    info = info .. string.format(" %d..%d", from, to)
  end
  return info
end

function proto.dissector(buffer, pinfo, root)
  local length = buffer:len()
  if length < 4 or buffer(0, 2):uint() ~= MAGIC then
    return 0
  end
  pinfo.cols.protocol = "TFRC"
  local tree = root:add(proto, buffer())
  tree:add(f.magic, buffer(0, 2))
  tree:add(f.version, buffer(2, 1))
  tree:add(f.type, buffer(2, 1))
  local version, kind = bit32.rshift(buffer(2, 1):uint(), 4), bit32.band(buffer(2, 1):uint(), 0x0f)
  if version ~= VERSION then
    complain(tree, string.format("version %d", version))
    return length
  end
  local flags = tree:add(f.flags, buffer(3, 1))
  local meaning = 0
  if kind == REQUEST then
    flags:add(f.ecn, buffer(3, 1))
    meaning = ECN_FLAG
  elseif kind == DATA then
    flags:add(f.several, buffer(3, 1))
    flags:add(f.framed, buffer(3, 1))
    flags:add(f.last, buffer(3, 1))
    meaning = SUBFLOW_FLAG + (part(buffer) > 0 and FRAME_FLAG + LAST_FLAG or 0)
  elseif kind == FEEDBACK then
    flags:add(f.several, buffer(3, 1))
    meaning = SUBFLOW_FLAG
  elseif kind == SEGMENT then
    flags:add(f.syn, buffer(3, 1))
    flags:add(f.push, buffer(3, 1))
    flags:add(f.cwr, buffer(3, 1))
    flags:add(f.segment_ece, buffer(3, 1))
    flags:add(f.ae, buffer(3, 1))
    meaning = SEGMENT_FLAGS
  elseif kind == SEGMENT_ACK then
    flags:add(f.syn, buffer(3, 1))
    flags:add(f.ece, buffer(3, 1))
    flags:add(f.ack_cwr, buffer(3, 1))
    flags:add(f.ae, buffer(3, 1))
    flags:add(f.windowed, buffer(3, 1))
    flags:add(f.blocks, buffer(3, 1))
    meaning = SEGMENT_ACK_FLAGS
  end
  if bit32.band(buffer(3, 1):uint(), bit32.bnot(meaning)) ~= 0 then
    complain(tree, "a reserved flag is set")
  end
  local want = lengths[kind]
  if want == nil then
    complain(tree, string.format("type %d has no meaning", kind))
    return length
  end
  if kind == DATA then
    want = want + more(buffer) + part(buffer)
  elseif kind == FEEDBACK then
    want = want + more(buffer)
  elseif kind == SEGMENT_ACK then
    local window, blocks = options(buffer)
    want = want + window + blocks
  end
  if length < want or (not carries[kind] and length > want) then
    complain(tree, string.format("%d bytes, where %s has %d", length, types[kind], want))
    return length
  end
  tree:add(f.connection, buffer(4, 4))
  local info = body[kind](buffer, tree)
  pinfo.cols.info = string.format("%s %08x %s", types[kind], buffer(4, 4):uint(), info)
  tree:append_text(string.format(", %s, connection %08x", types[kind], buffer(4, 4):uint()))
  if carries[kind] and length > want then
    Dissector.get("data"):call(buffer(want):tvb(), pinfo, root)
  end
  return length
end

proto:register_heuristic("udp", function(buffer, pinfo, root)
  if buffer:len() < 4 or buffer(0, 2):uint() ~= MAGIC or bit32.rshift(buffer(2, 1):uint(), 4) ~= VERSION then
    return false
  end
  proto.dissector(buffer, pinfo, root)
  return true
end)

DissectorTable.get("udp.port"):add_for_decode_as(proto)
