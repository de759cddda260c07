-- recover_node: put a node of a cluster below its quorum under the next generation, in the state of being admitted. Its
-- verified stream is kept (keep 1) or set aside (keep 0).
-- The call is accepted only while the node is as the plan saw it (expect:
-- run|cluster|incarnation|pending|epoch|head|head_epoch|head_hash|length). So of two recoveries at most one has a
-- quorum of marks. From now on no term of the former generation can act on this node.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 orphans
-- ARGV 1 cluster · 2 node · 3 owner · 4 writer_epoch_text · 5 nonce · 6 expect · 7 keep · 8 head_text · 9 head_epoch_text · 10 head_hash · 11 floor_text · 12 floor_hash · 13 keep_ms · 14 config
-- accepted: incarnation · challenge (what `backfill` and `admit` bring back, as after begin_admission)
-- refused: EXPECTATION (why: moved; actual) · NOT_READY (head: what the stream ends in) · STALE_NONCE (actual) · FENCING_ERROR (check: epoch, epoch) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I3, I6, I7: the epoch key does not change until `admit`. docs/PROTOCOL.md section 8.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local orphans_key = KEYS[5]
local cluster, node_id, owner, writer_epoch_text, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local expect, keep, head_text, head_epoch_text, head_hash = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local floor_text, floor_hash, keep_ms, config = ARGV[11], ARGV[12], ARGV[13], ARGV[14]

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
-- common: writes
-- After the first write a failure leaves the node half-changed. It must never look like a refusal of Redis, which means
-- that nothing was executed.
local function must(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error('half done: ' .. reply.err) end
  return reply
end
-- end common
-- common: hashes
-- 64 lower-case hex digits. (An anchored repeat costs half as much as a search for a character that is not one.)
local function is_hash(text) return #text == 64 and string.find(text, '^%x+$') ~= nil and string.lower(text) == text end
-- end common
-- common: owners
-- <sequencer id>/<nonce>
local function is_owner(text) return #text <= 512 and string.find(text, '/', 2, true) ~= nil and string.byte(text, -1) ~= 47 end
-- end common
-- common: run id
-- The name of this server's memory: `<run id>+<master_replid>`, the server process and the history of its data. The
-- second part changes whenever another server's data may have replaced this server's data. No value ever comes back. A
-- replica has no memory of its own: ''. A record that version 0.1.0 wrote has no `+`. It is compared in its own form
-- until the next claim notes the new form.
local function after(text, name)
  local _, last = string.find(text, name, 1, true)
  return last and string.sub(text, last + 1, last + 40) or ''
end
local function run_id(server, replication, noted)
  if string.find(replication, 'role:slave', 1, true) then return '' end
  local run = after(server, 'run_id:')
  if not noted or string.find(noted, '+', 1, true) then return run .. '+' .. after(replication, 'master_replid:') end
  local former = after(replication, 'master_replid2:')
  if not string.find(former, '[^0]') then return run end
  return run .. '/' .. former .. ':' .. (string.match(replication, 'second_repl_offset:(%d+)') or '')
end
local REPLICA = { err = 'READONLY a replica has no memory of its own' }
-- end common

local NONCES_KEPT = 16

local writer_epoch, keep_time = whole(writer_epoch_text), whole(keep_ms)
local new_head, new_head_epoch, new_floor = whole(head_text), whole(head_epoch_text), whole(floor_text)
if not string.find(cluster, '%.%d+$') then return bad('cluster') end
if node_id == '' then return bad('node') end
if not is_owner(owner) then return bad('owner') end
if not writer_epoch then return bad('epoch') end
if nonce == '' or string.find(nonce, '[ :]') then return bad('nonce') end
if not expect or expect == '' then return bad('expect') end
if keep ~= '0' and keep ~= '1' then return bad('keep') end
if not new_head or not new_head_epoch or new_head_epoch > writer_epoch then return bad('head') end
if not new_floor or new_floor > new_head or (keep == '0' and new_floor < new_head) then return bad('floor') end
if not is_hash(head_hash) then return bad('head_hash') end
if not is_hash(floor_hash) then return bad('floor_hash') end
if not keep_time or keep_time == 0 then return bad('keep_ms') end
if not config or #config > 16384 then return bad('config') end

local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'incarnation', 'claimant', 'head', 'head_epoch',
  'head_hash', 'pending', 'used', 'aside')
if record.err then return failed(record, admission_key) end
local texts = redis.pcall('MGET', lock_key, epoch_key)
if texts.err then return texts end
local lock, token = texts[1], texts[2]
if not lock or not token then
  -- MGET does not report a key of another type: read each key alone.
  lock = redis.pcall('GET', lock_key)
  if type(lock) == 'table' then return failed(lock, lock_key) end
  token = redis.pcall('GET', epoch_key)
  if type(token) == 'table' then return failed(token, epoch_key) end
end
-- A stream key of another type is damage. It is set aside like any other stream.
local length = redis.pcall('XLEN', stream_key)
if type(length) == 'table' then
  if not string.find(length.err, 'WRONGTYPE', 1, true) then return length end
  length = 0
end
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local run = run_id(server, replication)
if run == '' then return REPLICA end
local epoch = whole(token) or 0

if record[1] then
  local family, next_family = string.match(record[1], '^(.*)%.'), string.match(cluster, '^(.*)%.')
  if family ~= next_family then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
if record[4] == nonce or record[9] == nonce or string.find(' ' .. (record[10] or '') .. ' ', ' ' .. nonce .. ' ', 1, true) then
  return { 'refused', 'STALE_NONCE', 'actual', record[9] or '' }
end
local actual = table.concat({ run_id(server, replication, record[3]), record[1] or '', record[4] or '', record[9] or '', string.format('%d', epoch),
  string.format('%d', whole(record[6]) or 0), string.format('%d', whole(record[7]) or 0), record[8] or '',
  string.format('%d', length) }, '|')
if actual ~= expect then return { 'refused', 'EXPECTATION', 'why', 'moved', 'actual', actual } end
if epoch > writer_epoch then return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', string.format('%d', epoch) } end
if keep == '1' then
  local last = length > 0 and redis.call('XREVRANGE', stream_key, '+', '-', 'COUNT', 1)[1]
  local ends = last and last[1] == string.format('%d-%d', new_head, new_head_epoch)
  if length ~= new_head - new_floor or (length > 0 and not ends) then
    return { 'refused', 'NOT_READY', 'head', last and string.match(last[1], '^(%d+)') or '0' }
  end
end

local used = {}
for old in string.gmatch(record[10] or '', '%S+') do used[#used + 1] = old end
used[#used + 1] = nonce
local kept = table.concat(used, ' ', math.max(1, #used - NONCES_KEPT + 1))
local aside = record[11]

local time = redis.call('TIME')
local challenge = time[1] .. '.' .. time[2]
local first = redis.pcall('DEL', admission_key)
if type(first) == 'table' then return first end
if keep == '0' and must('EXISTS', stream_key) == 1 then
  if aside then must('DEL', orphans_key .. ':' .. aside) end
  must('RENAME', stream_key, orphans_key .. ':' .. nonce)
  must('PEXPIRE', orphans_key .. ':' .. nonce, keep_ms)
  aside = nonce
end
must('HSET', admission_key, 'cluster', cluster, 'node', node_id, 'run', run, 'claimant', record[5] or '',
  'head', head_text, 'head_epoch', head_epoch_text, 'head_hash', head_hash, 'floor', floor_text, 'floor_hash', floor_hash,
  'pending', nonce, 'pending_owner', owner, 'pending_epoch', writer_epoch_text, 'used', kept,
  'challenge', challenge)
if aside then must('HSET', admission_key, 'aside', aside) end
if config ~= '' then must('HSET', admission_key, 'config', config) end
return { 'accepted', '', challenge }
