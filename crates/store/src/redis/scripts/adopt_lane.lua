-- Makes ARGV[1] the writer of a lane that is being copied. One that is new begins after ARGV[2] records, the last of which has the
-- tag ARGV[3]. KEYS: lane head.
if redis.call('HEXISTS', KEYS[1], 'n') == 0 and ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], 'n', ARGV[2], 't', ARGV[3])
end
redis.call('HSET', KEYS[1], 'o', ARGV[1])
return 1
