package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/host"
)

// The log of dropped packets: which port loses packets, where and why. A line comes when a loss
// begins, and once a minute while it goes on. The counters have the exact numbers.

const (
	// dropsEvery is how often the agent fetches dropped packets from the switch.
	dropsEvery = time.Second
	// dropLineEvery is the least time between two lines of one kind of loss.
	dropLineEvery = time.Minute
	// dropKinds is how many kinds of loss the logger remembers.
	dropKinds = 1024
)

// dropKind is what the dropped packets of one line share.
type dropKind struct {
	port          uint32
	reason, table string
}

// dropLogger writes the lines. It is for one goroutine.
type dropLogger struct {
	log  *slog.Logger // nil: no lines
	told map[dropKind]*dropsLogged
}

// dropsLogged is when a kind had its last line, and how many packets followed.
type dropsLogged struct {
	at    time.Time
	since int
}

// runDropLog fetches dropped packets from the switch, so that its buffer has room for new ones,
// and logs them.
func (a *Agent) runDropLog(ctx context.Context) {
	t := dropLogger{told: map[dropKind]*dropsLogged{}}
	if *a.config.Drops.Log {
		t.log = a.log
	}
	tick := time.NewTicker(dropsEvery)
	defer tick.Stop()
	var silence host.Silence
	for since := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.lookAtNodes(&silence)
			var all []api.DroppedPacket
			all, _, since = a.Drops.Since(since, func(*api.DroppedPacket) bool { return true })
			for i := range all {
				t.logDrop(&all[i], now)
			}
		}
	}
}

// logDrop writes a line for a packet, unless its kind had one within dropLineEvery.
func (t *dropLogger) logDrop(p *api.DroppedPacket, now time.Time) {
	k := dropKind{p.Port.No, p.Reason, p.Table}
	told := t.told[k]
	if told != nil && now.Sub(told.at) < dropLineEvery {
		told.since++
		return
	}
	if told == nil {
		t.makeRoom(now)
		told = &dropsLogged{}
		t.told[k] = told
	}
	if t.log != nil {
		t.log.Info("packets are dropped", "port", p.Port.Name, "pod", p.Port.Pod, "reason", p.Reason, "table", p.Table,
			"object", p.Object(), "entry", p.EntryText(), "packet", p.Packet, "more", told.since)
	}
	told.at, told.since = now, 0
}

// makeRoom forgets kinds that had no line within dropLineEvery. If all had one, it forgets all.
func (t *dropLogger) makeRoom(now time.Time) {
	if len(t.told) < dropKinds {
		return
	}
	for k, told := range t.told {
		if now.Sub(told.at) >= dropLineEvery {
			delete(t.told, k)
		}
	}
	if len(t.told) >= dropKinds {
		clear(t.told)
	}
}

// lookAtNodes updates the Nodes that do not answer. One goroutine calls it.
func (a *Agent) lookAtNodes(s *host.Silence) {
	now, err := s.Nodes(a.otherNodes, a.config.Gateway.Name)
	if err != nil {
		return // keep the result of the last check
	}
	before := a.SilentNodes()
	if slices.Equal(now, before) {
		return
	}
	a.Silent.Store(&now)
	if a.tunnel != nil {
		a.tunnel.SetSilent(now)
	}
	for _, n := range now {
		if !slices.Contains(before, n) {
			a.log.Warn("a Node does not answer ARP or NDP: packets for it are lost", "node", a.NodeName(n), "address", n)
		}
	}
	for _, n := range before {
		if !slices.Contains(now, n) {
			a.log.Info("a Node answers again", "node", a.NodeName(n), "address", n)
		}
	}
}

// otherNodes are the underlay addresses of other Nodes and the next hops to them.
func (a *Agent) otherNodes() (all []netip.Addr) {
	for _, p := range a.config.Peers {
		all = append(append(all, p.Address), p.NodeIPs...)
	}
	if a.config.Kubernetes != nil {
		for _, p := range a.Objects.NodeSide().Peers {
			all = append(all, p.Address, p.NextHop)
		}
	}
	all = slices.DeleteFunc(all, func(n netip.Addr) bool { return !n.IsValid() })
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}
