package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
)

// Connections that were taken over are judged once by the entries that hold
// when the manifests have been read. What policies say meets the first packet of
// a connection only; what changed while no agent ran would never meet those that
// were there. So that first packet is made up again and walks, as a stranger
// (dataplane.TraceRequest): nothing is sent, counted or learned. A connection
// whose packet does not come through, or comes out elsewhere than the connection
// leads, is forgotten; its next packet is the first of a new one, and meets the
// policies itself.
//
// The first packet is known by where it came in and by the tuple that it had
// there, which is a connection's original one in the zone that packets come to
// first. That zone is the one of the walk's first ct(): connections of other
// zones go with those. What else the packet had is taken from the entries: who
// may send with which addresses tells the pods' MAC addresses. A connection
// whose port of entry nobody may send from any more is forgotten too.

// rejudged is what became of a connection.
type rejudged uint8

const (
	judgedKept    rejudged = iota
	judgedOther            // of a zone that packets do not come to first
	judgedDenied           // its packet does not come through
	judgedMoved            // it leads to another endpoint, or to none
	judgedUnknown          // nobody may send from where it came in
	judgements
)

// rejudgedNames are labels of metrics; judgedOther is not counted.
var rejudgedNames = [judgements]string{judgedKept: "kept", judgedDenied: "denied", judgedMoved: "moved", judgedUnknown: "unknown"}

// rejudgeCounts are how many connections became what.
type rejudgeCounts [judgements]atomic.Uint64

// How much of a processor the judging takes: a slice of connections, then a
// pause of three times as long.
const (
	rejudgeSlice = 256
	rejudgePause = 3
)

// runRejudge judges the connections that were taken over, when the switch has
// what the manifests say.
func (a *Agent) runRejudge(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.live.synced:
	}
	if a.ct.Stats().Restored.Entries == 0 {
		return
	}
	start := time.Now()
	if a.rejudge(ctx, newJudge(a.pipeline, a.config.nodePorts())) {
		n := &a.judged
		kept, denied, moved, unknown := n[judgedKept].Load(), n[judgedDenied].Load(), n[judgedMoved].Load(), n[judgedUnknown].Load()
		a.log.Info("connections of before judged by the entries of now", "examined", kept+denied+moved+unknown,
			"removed", denied+moved+unknown, "denied", denied, "moved", moved, "unknown", unknown, "took", time.Since(start))
	}
}

// rejudge judges every connection, a slice at a time; false when ctx ended
// before.
func (p *pipeline) rejudge(ctx context.Context, j *judge) bool {
	start, count, servers := time.Now(), 0, map[netip.AddrPort]bool{}
	for c := range p.ct.Dump(conntrack.Filter{}) {
		what := j.judge(&c)
		p.judged[what].Add(1)
		if what > judgedOther {
			p.shieldServer(&c, servers)
			p.forget(&c)
		}
		if count++; count%rejudgeSlice == 0 {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(rejudgePause * time.Since(start)):
			}
			start = time.Now()
		}
	}
	return true
}

// rejudgedShield is how long the servers of forgotten connections begin none: as
// long as their TCP sends again what nobody acknowledges (RFC 1122, section
// 4.2.3.5; Linux: 15 retries).
const rejudgedShield = 20 * time.Minute

// shieldServer keeps the server of a connection that is forgotten from picking it
// up the other way round: by its answers the connection would be the server's
// own, which other rules may allow. servers are those of before.
func (p *pipeline) shieldServer(c *conntrack.Conn, servers map[netip.AddrPort]bool) {
	to := c.After()
	at := netip.AddrPortFrom(to.Dst, to.DstPort)
	if to.Proto == packet.ProtoTCP && !servers[at] {
		servers[at] = true
		p.ct.Shield(slices.Collect(maps.Keys(servers)), p.clock()+int64(rejudgedShield))
	}
}

// forget removes a connection, and those of the zones that its packets came to
// later.
func (p *pipeline) forget(c *conntrack.Conn) {
	p.ct.Forget(c.Zone, &c.Orig)
	later := c.After()
	for _, z := range p.ct.Zones() {
		if z.Zone != c.Zone {
			p.ct.Forget(z.Zone, &later)
		}
	}
}
