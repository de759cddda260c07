-- begin_admission: step 1 of re-admission: set the stream aside, and note the server's run id and the nonce. From now
-- on the node takes part in nothing.
-- An intact node is set aside only if it has promised nothing to another term of this epoch or a later one, and only if
-- `replaces` names its incarnation. Without a configuration it must also be under the caller's lock. Otherwise a
-- delayed copy of this call could set aside what the same term has admitted since.
-- Another term's unfinished admission is taken over only with a higher epoch. A node with a bootstrap mark is treated
-- like an empty one: a late phase 2 then no longer finds its mark.
-- The record keeps the last 16 nonces (field used). A node that loses its memory forgets them. So it also notes a
-- challenge of its own, the time by its clock. Only who has read the answer can go on with the admission.
-- An unfinished admission filled in committed blocks only. They are kept if they end at resume_head with resume_hash
-- and the server has not restarted since. Otherwise they are dropped; with keep_ms 1, what was set aside earlier is
-- dropped too. The reply says where filling resumes.
-- The configuration that names the new memory (config) is noted with it. A configuration that is earlier than the one
-- this node knows is refused.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 orphans
-- ARGV 1 cluster · 2 node · 3 owner · 4 writer_epoch_text · 5 nonce · 6 floor_text · 7 new_floor_hash · 8 keep_ms · 9 replaces · 10 resume_head_text · 11 resume_hash · 12 config
-- accepted: incarnation · head · challenge
-- refused: CONFIG_STALE (actual: the configuration it knows) · STALE_NONCE (actual: what is pending, or the incarnation that is there) · FENCING_ERROR (check: lock, holder; or check: epoch, epoch) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I3, I7, I11, I13: the epoch key does not change. docs/PROTOCOL.md section 8.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local orphans_key = KEYS[5]
local cluster, node_id, owner, writer_epoch_text, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local floor_text, new_floor_hash, keep_ms, replaces = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local resume_head_text, resume_hash, config = ARGV[10], ARGV[11], ARGV[12]

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
-- common: configuration
-- Who the nodes are (`<epoch>.<turn> <settings> | r1=<memory>@<address> …`). `earlier`: whether one version is earlier
-- than another; '' is the earliest.
local function earlier(one, other)
  local epoch, turn = string.match(one, '^(%d+)%.(%d+) ')
  local its_epoch, its_turn = string.match(other, '^(%d+)%.(%d+) ')
  if not its_epoch then return false end
  if not epoch then return true end
  epoch, its_epoch = tonumber(epoch), tonumber(its_epoch)
  return epoch < its_epoch or (epoch == its_epoch and tonumber(turn) < tonumber(its_turn))
end
-- end common

local NONCES_KEPT = 16

local writer_epoch, new_floor, keep = whole(writer_epoch_text), whole(floor_text), whole(keep_ms)
if cluster == '' then return bad('cluster') end
if node_id == '' then return bad('node') end
if not is_owner(owner) then return bad('owner') end
if not writer_epoch then return bad('epoch') end
if nonce == '' or string.find(nonce, '[ :]') then return bad('nonce') end
if not new_floor then return bad('floor') end
if not is_hash(new_floor_hash) then return bad('floor_hash') end
if not keep or keep == 0 then return bad('keep_ms') end
if not replaces then return bad('replaces') end
if resume_head_text ~= '' and (not whole(resume_head_text) or not is_hash(resume_hash or '')) then return bad('resume') end
if not config or #config > 16384 or (config ~= '' and not string.find(config, '^%d+%.%d+ ')) then return bad('config') end

local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'incarnation', 'claimant', 'head', 'head_epoch',
  'head_hash', 'floor', 'floor_hash', 'pending', 'pending_owner', 'pending_epoch', 'used', 'aside', 'config')
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
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local run, here = run_id(server, replication), run_id(server, replication, record[3])
if run == '' then return REPLICA end
local epoch = whole(token)
local claimant, pending = record[5], record[11]

if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
  if earlier(config, record[16] or '') then return { 'refused', 'CONFIG_STALE', 'actual', record[16] } end
  if record[4] == nonce or string.find(' ' .. (record[14] or '') .. ' ', ' ' .. nonce .. ' ', 1, true) then
    return { 'refused', 'STALE_NONCE', 'actual', pending or '' }
  end
  if pending then
    local pending_epoch = whole(record[13]) or 0
    if writer_epoch < pending_epoch or (writer_epoch == pending_epoch and record[12] ~= owner) then
      return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', string.format('%d', pending_epoch) }
    end
  else
    local head, head_epoch, floor = whole(record[6]), whole(record[7]), whole(record[9])
    local intact = record[3] == here and epoch and head and head_epoch and floor and record[4] and claimant and record[8]
      and record[10] and length == head - floor
      and (length == 0 or #redis.call('XREVRANGE', stream_key, '+', string.format('(%d-%d', head, head_epoch), 'COUNT', 1) == 0)
    if intact then
      if config ~= '' then lock = owner end
      -- common: fencing
      -- I3: the lock is mine. The node has promised nothing to a later term, or to another term of the same epoch.
      if lock ~= owner then
        if lock then return { 'refused', 'FENCING_ERROR', 'check', 'lock', 'holder', lock } end
        return { 'refused', 'FENCING_ERROR', 'check', 'lock' }
      end
      if writer_epoch < epoch or (writer_epoch == epoch and claimant ~= owner) then
        return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', string.format('%d', epoch) }
      end
      -- end common
      if replaces ~= record[4] then return { 'refused', 'STALE_NONCE', 'actual', record[4] } end
    end
  end
end
-- The node may still remember a higher epoch than this leader has, and that epoch must not fall. A number that is more
-- than any leap (2^32) above was written by hand. No term can have received a promise for it, so it is lost like the
-- rest of this memory.
if epoch and epoch > writer_epoch and epoch <= writer_epoch + 4294967296 then
  return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', string.format('%d', epoch) }
end

-- Leaders that knew all these blocks to be committed wrote them. The caller knows the block at which they end.
local head, floor = whole(record[6]), whole(record[9])
local keeps = pending and resume_head_text ~= '' and record[3] == here and record[6] == resume_head_text and record[8] == resume_hash
  and record[7] and head and floor and record[10] and length == head - floor
  and (length == 0 or #redis.call('XREVRANGE', stream_key, '+', '(' .. record[6] .. '-' .. record[7], 'COUNT', 1) == 0)

local used = {}
for old in string.gmatch(record[14] or '', '%S+') do used[#used + 1] = old end
used[#used + 1] = nonce
local kept = table.concat(used, ' ', math.max(1, #used - NONCES_KEPT + 1))
local aside = record[15]

local time = redis.call('TIME')
local challenge = time[1] .. '.' .. time[2]
local first = redis.pcall('DEL', admission_key)
if type(first) == 'table' then return first end
local head_epoch_text = '0'
if keeps then
  head_epoch_text, floor_text, new_floor_hash = record[7], record[9], record[10]
elseif pending and string.sub(pending, 1, 10) ~= 'bootstrap:' then
  must('DEL', stream_key)
  if aside and keep_ms == '1' then
    must('DEL', orphans_key .. ':' .. aside)
    aside = nil
  end
elseif must('EXISTS', stream_key) == 1 then
  if aside then must('DEL', orphans_key .. ':' .. aside) end
  must('RENAME', stream_key, orphans_key .. ':' .. nonce)
  must('PEXPIRE', orphans_key .. ':' .. nonce, keep_ms)
  aside = nonce
end
must('HSET', admission_key, 'cluster', cluster, 'node', node_id, 'run', run, 'claimant', claimant or '',
  'head', keeps and record[6] or floor_text, 'head_epoch', head_epoch_text, 'head_hash', keeps and record[8] or new_floor_hash, 'floor', floor_text, 'floor_hash', new_floor_hash,
  'pending', nonce, 'pending_owner', owner, 'pending_epoch', writer_epoch_text, 'used', kept, 'challenge', challenge)
if aside then must('HSET', admission_key, 'aside', aside) end
if config ~= '' then must('HSET', admission_key, 'config', config) end
return { 'accepted', '', keeps and record[6] or floor_text, challenge }
