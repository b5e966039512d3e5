package agent

import (
	"context"
	"log/slog"
	"time"

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
			var all []LostPacket
			all, _, since = a.lost.since(since, func(*LostPacket) bool { return true })
			for i := range all {
				t.tell(&all[i], now)
			}
		}
	}
}

// tell writes a line for a packet, if its kind has had none for a while.
func (t *lostTeller) tell(p *LostPacket, now time.Time) {
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
			"object", p.Object(), "entry", p.entryText(), "packet", p.Packet, "more", told.since)
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
