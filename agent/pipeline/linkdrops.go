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

// What the kernel drops of a Pod's frames at its link, before a packet socket has them:
// those longer than the link's MTU, and those that the backlog of a processor has no
// room for. The link counts them, and no port does.

// lossLink is the reason to lose such a frame, and linkDropped its text at a port.
var lossLink = LossReason{"port_dropped_by_the_link", "The link dropped it before the switch had it: a frame longer than the link's MTU, or too many at once (net.core.netdev_max_backlog)."}

const linkDropped = "dropped by the link"

// linkDrops are what links have dropped since they were first looked at.
type linkDrops struct {
	mu   sync.Mutex
	base map[string]uint64 // by link, at the first look
}

// portStats are the ports, with what their links and the Node's nftables have dropped.
func (p *Pipeline) portStats() []telemetry.PortStats {
	all := p.Switch.Ports()
	p.TunnelDrops.addTo(all)
	for i := range all {
		if all[i].Driver != config.DriverAFPacket {
			continue
		}
		// One read has all links, and waits for no lock of the kernel's.
		if text, err := os.ReadFile("/proc/thread-self/net/dev"); err == nil {
			p.links.addToStats(all, receiveDrops(text))
		}
		break
	}
	return all
}

// addToStats adds to ports on packet sockets what their links have dropped. Of a link that is
// new, or made anew, nothing counts yet.
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

// receiveDrops reads the dropped frames of each link out of /proc/net/dev (proc_pid_net(5)):
// two lines of headings, then LINK: bytes packets errs drop and on.
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
