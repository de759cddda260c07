-- retire_node: retire this server for good, because another server takes its place. From now on it refuses every call
-- and is foreign to everybody. The call is accepted only while the server's memory is the one that the plan names.
-- Nothing is deleted: stream and epoch stay as evidence.
-- KEYS 1 admission
-- ARGV 1 cluster · 2 node · 3 expect (its incarnation, or the nonce that is pending) · 4 moved_to (where its successor is)
-- accepted: incarnation
-- refused: EXPECTATION (why: incarnation, actual) · NOT_ADMITTED (why: wiped) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I7: two servers must never count as one node. docs/PROTOCOL.md section 8.
local admission_key = KEYS[1]
local cluster, node_id, expect, moved_to = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- common: refusals
local function bad(name) return { 'refused', 'BAD_ARGUMENT', 'why', name } end
-- A read failed before anything was written. A key of another type is a refusal; Redis' own errors are passed on
-- unchanged.
local function failed(reply, key)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return { 'refused', 'WRONG_TYPE', 'why', key } end
  return reply
end
-- end common

if cluster == '' then return bad('cluster') end
if node_id == '' then return bad('node') end
if not moved_to or moved_to == '' or #moved_to > 512 then return bad('moved_to') end

local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation', 'pending')
if record.err then return failed(record, admission_key) end
if not record[1] then return { 'refused', 'NOT_ADMITTED', 'why', 'wiped' } end
if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
local memory = record[4] or record[3] or ''
if memory ~= expect then return { 'refused', 'EXPECTATION', 'why', 'incarnation', 'actual', memory } end

local first = redis.pcall('HSET', admission_key, 'cluster', 'retired:' .. cluster, 'moved_to', moved_to)
if type(first) == 'table' then return first end
return { 'accepted', record[3] or '' }
