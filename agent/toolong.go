package agent

import (
	"context"
	"time"

	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tables"
)

// runTooLong answers the senders of what was too long for the tunnel, as a
// router does, until ctx ends: rejectRate of them a second, and those only who
// wait in the tunnel's short queue. TCP and all who discover the MTU of a path
// go on with shorter packets.
func (a *Agent) runTooLong(ctx context.Context) {
	var longs <-chan underlay.Long
	if a.here != nil {
		longs = a.here.Longs()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-longs:
			a.packets.tooLong(l.Frame, a.tunnel.PathMTU(l.Node))
			time.Sleep(time.Second / rejectRate)
		}
	}
}

// tooLong answers one sender.
func (r *rejecter) tooLong(frame []byte, mtu int) {
	b := tooBig(frame, mtu)
	if b == nil {
		r.length.silent.Add(1)
		return
	}
	from, actions, ok := tables.Report(r.sw.Names())
	if !ok || r.sw.PacketOut(from, actions, b) != nil {
		r.length.failed.Add(1)
		return
	}
	r.length.answered.Add(1)
}
