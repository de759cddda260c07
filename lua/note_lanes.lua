-- note_lanes: store entries of the lane registry. Of two entries for one lane the higher version stays, then the greater
-- writer. So the order in which entries arrive does not matter, and a repeated call changes nothing.
-- KEYS 1 admission · 2 lanes
-- ARGV 1 cluster · 2 node · 3 …pairs
-- accepted: incarnation · changed
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- A pair is a lane and `<version> <state> <writer, hex> …`. No rule of safety depends on the registry: each lane has its own
-- record. Works also on a node that is not admitted. docs/PROTOCOL.md section 2.
local admission_key, lanes_key = KEYS[1], KEYS[2]
local cluster, node_id, given = ARGV[1], ARGV[2], ARGV

-- common: numbers
-- A number of the protocol: digits only, no leading zero, at most 2^48; nil otherwise. No cluster counts up to 2^48. A
-- larger number was written by hand or by mistake. To count on from it would leave the range in which a double is
-- exact.
local find, byte, tonumber = string.find, string.byte, tonumber
local function whole(text)
  if not text or #text > 15 or not find(text, '^%d+$') then return nil end
  local first = byte(text)
  if not first or (first == 48 and #text > 1) then return nil end
  local value = tonumber(text)
  if value > 281474976710656 then return nil end
  return value
end
-- end common
-- common: refusals
local function bad(name) return { 'refused', 'BAD_ARGUMENT', 'why', name } end
-- A read failed before anything was written. A key of another type is a refusal; Redis' own errors are passed on
-- unchanged.
local function failed(reply, key)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return { 'refused', 'WRONG_TYPE', 'why', key } end
  return reply
end
-- end common

local MOST_PAIRS, MOST_BYTES = 128, 512

-- The version and the writer of an entry. A text that no version of seq wrote has none, and every entry replaces it.
local function rank_of(text)
  if not text or #text > MOST_BYTES then return nil end
  local version, writer = string.match(text, '^(%d+) %l+ (%x+) [%w%p ]+$')
  version = whole(version)
  if not version then return nil end
  return version, writer
end

if #given < 4 or #given % 2 ~= 0 or #given > 2 + 2 * MOST_PAIRS then return bad('pairs') end
local names = {}
for at = 3, #given, 2 do
  local name = given[at]
  if #name > 64 or not find(name, '^[%w_.-]+$') then return bad('lane') end
  if not rank_of(given[at + 1]) then return bad('entry') end
  names[#names + 1] = name
end

-- common: identity
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local incarnation = record[3] or ''
-- end common

local stored = redis.pcall('HMGET', lanes_key, unpack(names))
if stored.err then return failed(stored, lanes_key) end
local changes, count = {}, 0
for index, name in ipairs(names) do
  local text = given[2 * index + 2]
  local version, writer = rank_of(text)
  local known, known_writer = rank_of(stored[index])
  if not known or version > known or (version == known and writer > known_writer) then
    changes[#changes + 1] = name
    changes[#changes + 1] = text
    count = count + 1
  end
end
if count > 0 then
  local first = redis.pcall('HSET', lanes_key, unpack(changes))
  if type(first) == 'table' then return first end
end
return { 'accepted', incarnation, string.format('%d', count) }
