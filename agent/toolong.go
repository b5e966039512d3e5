package agent

import (
	"context"
	"time"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/ports/underlay"
)

// runTooLong answers the senders of what was too long for the tunnel, as a
// router does, until ctx ends: one each packetin.RejectPause, and those only who
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
			a.packets.TooLong(l.Frame, a.tunnel.PathMTU(l.Node))
			time.Sleep(packetin.RejectPause)
		}
	}
}
