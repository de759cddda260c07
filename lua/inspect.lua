-- inspect: read everything small that this node knows, in one step. It writes nothing and refuses nothing.
-- The value is a flat list of names and values. A key of another type reads as absent and makes the node `damaged`.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 hold · 6 handover · 7 request · 8 sequencers · 9 sequencer · 10 orphans
-- ARGV 1 cluster · 2 node · 3 brief
-- accepted: incarnation · admission · why · run · time_ms · record · lock · lock_pttl · epoch · length · hold · hold_pttl · handover · handover_pttl · request · sequencers · absent · info
-- refused: nothing of its own
-- A caller that does not know the cluster or the node id yet leaves it empty. Then the node is not called foreign
-- because of it. `brief` = 1 leaves `info` empty: four sections of INFO cost more than everything else, and a probe
-- before a promotion does not need them. No payload is read. Presence records are found through their index. `absent`
-- names the sequencers of the index whose record has expired, each with the time at which it was last written.
-- docs/PROTOCOL.md sections 4, 8, 9.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local hold_key, handover_key, request_key, sequencers_key = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local sequencer_key, orphans_key = KEYS[9], KEYS[10]
local cluster, node_id, brief = ARGV[1], ARGV[2], ARGV[3]

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

local INFO_FIELDS = {
  server = { 'redis_version', 'valkey_version', 'redis_mode', 'uptime_in_seconds', 'tcp_port' },
  memory = { 'used_memory', 'maxmemory', 'maxmemory_policy' },
  persistence = { 'loading', 'aof_enabled', 'aof_last_write_status', 'aof_last_bgrewrite_status', 'aof_delayed_fsync', 'rdb_last_bgsave_status',
    'rdb_last_save_time', 'rdb_changes_since_last_save' },
  replication = { 'role', 'connected_slaves' },
  cluster = { 'cluster_enabled' },
}

local mistyped = nil
local denied = nil
local function ask(key, command, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then mistyped = mistyped or key else denied = denied or reply end
    return nil
  end
  return reply
end

local pairs_of_record = ask(admission_key, 'HGETALL') or {}
local lock = ask(lock_key, 'GET')
local token = ask(epoch_key, 'GET')
local length = ask(stream_key, 'XLEN') or 0
local hold = ask(hold_key, 'HGETALL') or {}
local handover = ask(handover_key, 'GET')
local request = ask(request_key, 'HGETALL') or {}
local ids = ask(sequencers_key, 'ZRANGE', 0, -1, 'WITHSCORES') or {}
if denied then return denied end

local info = {}
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
for section, fields in pairs(brief == '1' and {} or INFO_FIELDS) do
  local text = section == 'server' and server or redis.pcall('INFO', section)
  if type(text) == 'table' then return text end
  for _, field in ipairs(fields) do
    local value = string.match(text, '\n' .. field .. ':([^\r\n]*)')
    if value then
      info[#info + 1] = field
      info[#info + 1] = value
    end
  end
end

-- A retired server refuses every call, whoever asks.
local function why_retired(named, moved_to)
  if moved_to == 'removed' then return 'the lane was removed: its memory here is retired' end
  local from = 'it was retired from cluster ' .. string.sub(named, 9)
  return string.find(moved_to, '^%l+://') and from .. ': its successor is at ' .. moved_to or from .. ' and counts for nothing'
end

local record = {}
for i = 1, #pairs_of_record, 2 do record[pairs_of_record[i]] = pairs_of_record[i + 1] end
local run = run_id(server, replication, record.run)
local admission, why = 'admitted', ''
local epoch, head, head_epoch, floor = whole(token), whole(record.head), whole(record.head_epoch), whole(record.floor)
if mistyped then
  admission, why = 'damaged', mistyped .. ' holds another type'
elseif not record.cluster then
  local bare = #pairs_of_record == 0 and redis.call('EXISTS', lock_key, epoch_key, stream_key, orphans_key) == 0
  admission = bare and 'pristine' or 'wiped'
  why = bare and '' or 'keys of a former life without an admission record'
elseif string.sub(record.cluster, 1, 8) == 'retired:' then
  admission, why = 'foreign', why_retired(record.cluster, record.moved_to or '')
elseif cluster ~= '' and record.cluster ~= cluster then
  admission, why = 'foreign', 'the record names cluster ' .. record.cluster
elseif node_id ~= '' and record.node ~= node_id then
  admission, why = 'foreign', 'the record names node ' .. (record.node or '')
elseif record.pending then
  admission = string.sub(record.pending, 1, 10) == 'bootstrap:' and 'bootstrap' or 'admitting'
  if record.run ~= run then why = 'the server restarted since' end
elseif run == '' then
  admission, why = 'restarted', 'it is a replica: what it holds is the memory of another server'
elseif record.run ~= run then
  admission = 'restarted'
  why = string.sub(record.run or '', 1, 40) == string.sub(run, 1, 40)
    and 'the history of its data is not the one that was admitted: it was a replica in between, or a replica was attached to it'
    or 'the server process is not the one that was admitted'
elseif not token then
  admission, why = 'damaged', 'the epoch key is gone'
elseif not epoch and string.find(token, '^[1-9]%d+$') then
  admission, why = 'damaged', string.format('the epoch key holds %s: no term can have reached it', string.sub(token, 1, 40))
elseif not (epoch and head and head_epoch and floor and record.incarnation and record.claimant and record.head_hash and record.floor_hash) then
  admission, why = 'damaged', 'the admission record or the epoch key is incomplete or not a number'
elseif length ~= head - floor then
  admission, why = 'damaged', string.format('the stream holds %d entries, the record says %d', length, head - floor)
elseif length > 0 and #redis.call('XREVRANGE', stream_key, '+', string.format('(%d-%d', head, head_epoch), 'COUNT', 1) > 0 then
  admission, why = 'damaged', string.format('the stream reaches above the head of the record, %d-%d', head, head_epoch)
end

local sequencers, absent = {}, {}
for i = 1, #ids, 2 do
  local id = ids[i]
  local presence = redis.pcall('HGETALL', sequencer_key .. id)
  if not presence.err and #presence > 0 then
    sequencers[#sequencers + 1] = { id, redis.call('PTTL', sequencer_key .. id), presence }
  elseif not presence.err and whole(ids[i + 1]) then
    absent[#absent + 1] = { id, ids[i + 1] }
  end
end

local time = redis.call('TIME')
return { 'accepted', record.incarnation or '',
  'admission', admission, 'why', why, 'run', run,
  'time_ms', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)),
  'record', pairs_of_record,
  'lock', lock or '', 'lock_pttl', redis.call('PTTL', lock_key),
  'epoch', token or '', 'length', length,
  'hold', hold, 'hold_pttl', redis.call('PTTL', hold_key),
  'handover', handover or '', 'handover_pttl', redis.call('PTTL', handover_key),
  'request', request, 'sequencers', sequencers, 'absent', absent, 'info', info }
