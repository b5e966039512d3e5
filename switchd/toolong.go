package switchd

import (
	"context"
	"sync"
	"time"

	"github.com/antrail/antrail/switchd/reject"
)

// runTooLong answers the senders of frames that were too long for a tunnel, until ctx ends.
func (p *Process) runTooLong(ctx context.Context) error {
	for ctx.Err() == nil {
		until, end := context.WithCancel(ctx)
		var answering sync.WaitGroup
		for _, t := range p.ports.Tunnels() {
			answering.Go(func() { p.runAnswers(until, t) })
		}
		select {
		case <-ctx.Done():
		case <-p.ports.TunnelChanged():
		}
		end()
		answering.Wait()
	}
	return nil
}

// runAnswers answers the senders of frames that were too long for a tunnel, until ctx ends. It
// pauses between two answers. While the channel of frames is full, the tunnel drops further
// frames and copies nothing. TCP, and every sender that discovers the MTU of a path, continues
// with shorter packets.
func (p *Process) runAnswers(ctx context.Context, t Tunnel) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-t.Longs():
			p.sw.TooLong(l.Frame, t.PathMTU(l.Node))
			time.Sleep(reject.Pause)
		}
	}
}
