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

// The log of dropped packets: who loses packets, where and why, when it begins and
// once a minute while it goes on. Counters have the numbers; a line is for who
// reads the log only.

const (
	// dropsEvery is how often dropped packets are taken over from the switch.
	dropsEvery = time.Second
	// dropLineEvery is how often there is a line for one kind of loss.
	dropLineEvery = time.Minute
	// dropKinds is how many kinds of loss are known at once.
	dropKinds = 1024
)

// dropKind is what dropped packets of one line have in common.
type dropKind struct {
	port          uint32
	reason, table string
}

// dropLogger writes lines. It is for one goroutine.
type dropLogger struct {
	log  *slog.Logger // nil: no lines
	told map[dropKind]*dropsLogged
}

// dropsLogged is when there was a line of a kind, and how many packets came since.
type dropsLogged struct {
	at    time.Time
	since int
}

// runDropLog takes dropped packets over from the switch, so that there is always room
// for new ones, and writes the log.
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

// logDrop writes a line for a packet, if its kind has had none for a while.
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

// makeRoom forgets kinds that were not seen for a while, and if there are none,
// all.
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

// lookAtNodes finds the Nodes that are silent now. It is called by one goroutine.
func (a *Agent) lookAtNodes(s *host.Silence) {
	now, err := s.Nodes(a.otherNodes, a.config.Gateway.Name)
	if err != nil {
		return // what was known holds until the next look
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

// otherNodes are the addresses that packets for pods of other Nodes go to.
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
