package pipeline

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/telemetry"
)

// The kernel drops some of a Pod's frames at its link, before a packet socket receives them.
// These are longer than the link's MTU, or beyond the backlog of a processor. The link
// counts them; no port does.

// lossLink is the reason of such a drop, and linkDropped its text at a port.
var lossLink = LossReason{"port_dropped_by_the_link", "The link dropped it before the switch received it: a frame longer than the link's MTU, or too many at once (net.core.netdev_max_backlog)."}

const linkDropped = "dropped by the link"

// linkDrops counts what links have dropped since they were first read.
type linkDrops struct {
	mu   sync.Mutex
	base map[string]uint64 // by link, at the first read
}

// portStats are the ports, with the drops at their links and in the Node's nftables.
func (p *Pipeline) portStats() []telemetry.PortStats {
	all := p.Switch.Ports()
	p.TunnelDrops.addTo(all)
	for i := range all {
		if all[i].Driver != config.DriverAFPacket {
			continue
		}
		// One read has all links, and takes no lock of the kernel.
		if text, err := os.ReadFile("/proc/thread-self/net/dev"); err == nil {
			p.links.addToStats(all, receiveDrops(text))
		}
		break
	}
	return all
}

// addToStats adds to ports on packet sockets what their links have dropped. Counting starts
// when a link is new or was recreated.
func (l *linkDrops) addToStats(all []telemetry.PortStats, drops map[string]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	base := map[string]uint64{}
	for i := range all {
		s := &all[i]
		now, there := drops[s.Name]
		if s.Driver != config.DriverAFPacket || !there {
			continue
		}
		before, known := l.base[s.Name]
		if !known || now < before {
			before = now
		}
		base[s.Name] = before
		if n := now - before; n > 0 {
			s.Reasons = maps.Clone(s.Reasons)
			s.Reasons[linkDropped] = n
			s.RxDropped += n
		}
	}
	l.base = base
}

// receiveDrops parses the dropped frames of each link in /proc/net/dev (proc_pid_net(5)): two
// heading lines, then LINK: bytes packets errs drop and more.
func receiveDrops(text []byte) map[string]uint64 {
	all := map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, counts, ok := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(counts)
		const drop = 3
		if !ok || len(fields) <= drop {
			continue
		}
		if n, err := strconv.ParseUint(fields[drop], 10, 64); err == nil {
			all[strings.TrimSpace(name)] = n
		}
	}
	return all
}
