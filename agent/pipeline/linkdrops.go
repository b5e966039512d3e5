package pipeline

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"slices"
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
	if slices.ContainsFunc(all, func(s telemetry.PortStats) bool { return s.Driver == config.DriverAFPacket }) {
		if now := dropsNow(); now != nil {
			p.links.addToStats(all, now)
		}
	}
	return all
}

// portMark changes when portStats may have news.
type portMark struct {
	ports         uint64 // door.DropsAnswer.Ports
	links, tunnel uint64 // frames that links and nftables have dropped
}

func (p *Pipeline) portMark(ports uint64) portMark {
	return portMark{ports, p.links.sum(), p.TunnelDrops.read()}
}

// sum is what the links of the ports at the last addToStats have dropped until now.
func (l *linkDrops) sum() (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.base) == 0 {
		return 0
	}
	now := dropsNow()
	for name := range l.base {
		n += now[name]
	}
	return n
}

// dropsNow is what each of the Node's links has dropped; nil if the kernel does not tell. One read
// has all links, and takes no lock of the kernel.
func dropsNow() map[string]uint64 {
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return nil
	}
	return receiveDrops(text)
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
