package underlay

import "github.com/antrail/antrail/packet"

// maxJoined is how many joined frames may be under way. When there are more,
// segments stay single.
const maxJoined = 64

// join makes one frame of each run of TCP segments in batch that follow one
// another, and returns how many frames are left there. What another Node's
// worker cut, because the tunnel carries no large frames, walks the tables here
// as one frame again, and reaches a pod as one.
func (p *Port) join(batch []*packet.Frame) int {
	left := 0
	for at := 0; at < len(batch); {
		p.train.Start(batch[at])
		end := at + 1
		for end < len(batch) && p.train.Add(batch[end]) {
			end++
		}
		left += p.joinRun(batch[left:], batch[at:end])
		at = end
	}
	return left
}

// joinRun puts the frame of a train, or its single ones, at the front of out and
// returns how many.
func (p *Port) joinRun(out, run []*packet.Frame) int {
	one := p.joined[:]
	if len(run) < 2 || p.large.Get(one) == 0 {
		return copy(out, run)
	}
	if !p.train.Join(one[0], run) {
		packet.Release(one)
		return copy(out, run)
	}
	packet.Release(run)
	out[0] = one[0]
	return 1
}
