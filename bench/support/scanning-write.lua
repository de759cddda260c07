-- For comparison only: the write script of the published design, written afresh from its description. One stream of blocks under automatic
-- ids, no index: whether a height exists is found by reading the whole stream, payloads and all.
-- KEYS: lock, epoch, stream. ARGV: owner, epoch, height, data, timestamp, ttl ms, stream length to keep.
-- Replies: the id of the entry; errors FENCING_ERROR, HEIGHT_EXISTS.
local lock, epoch_key, stream = KEYS[1], KEYS[2], KEYS[3]
local owner, epoch, height, data, timestamp, ttl, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if redis.call('GET', lock) ~= owner then return redis.error_reply('FENCING_ERROR: not the lock holder') end
local seen = tonumber(redis.call('GET', epoch_key) or '0')
if epoch < seen then return redis.error_reply('FENCING_ERROR: stale epoch') end
redis.call('SET', epoch_key, tostring(epoch))
for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+')) do
  local fields = entry[2]
  for at = 1, #fields, 2 do
    if fields[at] == 'height' and fields[at + 1] == height then return redis.error_reply('HEIGHT_EXISTS: ' .. height) end
  end
end
local id = redis.call('XADD', stream, 'MAXLEN', '~', keep, '*', 'height', height, 'data', data, 'epoch', tostring(epoch), 'timestamp', timestamp)
redis.call('PEXPIRE', lock, ttl)
return id
