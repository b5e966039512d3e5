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

// The log of lost packets: who loses packets, where and why, when it begins and
// once a minute while it goes on. Counters have the numbers; a line is for who
// reads the log only.

const (
	// lostEvery is how often lost packets are taken over from the switch.
	lostEvery = time.Second
	// tellLostEvery is how often there is a line for one kind of loss.
	tellLostEvery = time.Minute
	// lostKinds is how many kinds of loss are known at once.
	lostKinds = 1024
)

// lostKind is what lost packets of one line have in common.
type lostKind struct {
	port          uint32
	reason, table string
}

// lostTeller writes lines. It is for one goroutine.
type lostTeller struct {
	log  *slog.Logger // nil: no lines
	told map[lostKind]*lostTold
}

// lostTold is when there was a line of a kind, and how many packets came since.
type lostTold struct {
	at    time.Time
	since int
}

// runLost takes lost packets over from the switch, so that there is always room
// for new ones, and writes the log.
func (a *Agent) runLost(ctx context.Context) {
	t := lostTeller{told: map[lostKind]*lostTold{}}
	if *a.config.Drops.Log {
		t.log = a.log
	}
	tick := time.NewTicker(lostEvery)
	defer tick.Stop()
	var silence host.Silence
	for since := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.lookAtNodes(&silence)
			var all []api.LostPacket
			all, _, since = a.Lost.Since(since, func(*api.LostPacket) bool { return true })
			for i := range all {
				t.tell(&all[i], now)
			}
		}
	}
}

// tell writes a line for a packet, if its kind has had none for a while.
func (t *lostTeller) tell(p *api.LostPacket, now time.Time) {
	k := lostKind{p.Port.No, p.Reason, p.Table}
	told := t.told[k]
	if told != nil && now.Sub(told.at) < tellLostEvery {
		told.since++
		return
	}
	if told == nil {
		t.makeRoom(now)
		told = &lostTold{}
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
func (t *lostTeller) makeRoom(now time.Time) {
	if len(t.told) < lostKinds {
		return
	}
	for k, told := range t.told {
		if now.Sub(told.at) >= tellLostEvery {
			delete(t.told, k)
		}
	}
	if len(t.told) >= lostKinds {
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
