package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
)

// ovsRate is more frames a second than the polling thread takes, so that it has full batches as under
// load. Frames without room in the ring are lost before the thread counts them.
const ovsRate = 2_000_000

// warmTime is how long packets flow before a sample.
const warmTime = 10 * time.Millisecond

// longestNew is how long packets can flow until one has the ports of an earlier one, with a reserve. The
// second packet of an unanswered connection costs less than a first one. If it goes to a ClusterIP, its
// address is translated at once, and it leaves for the gateway.
func longestNew(c testbed.PortChange) time.Duration {
	return time.Duration(c.Connections()) * time.Second / ovsRate * 9 / 10
}

// takeSample sends packets by a generator and reads what they cost the polling thread.
func (w *ovsContender) takeSample(ctx context.Context, c *workload.Packets, base bool, long time.Duration) (sample, error) {
	frame, change := c.Frame, append(testbed.NumberInstructions(w.nextNew, c.Connections), c.Change.Instructions()...)
	if base {
		frame, change = append(append([]byte{}, markedMAC...), c.Frame[6:]...), nil
	}
	fresh := c.Connections == 0 && !base
	if fresh { // remove known connections, and new ones of the last sample
		if _, err := w.Appctl(ctx, "dpctl/flush-conntrack"); err != nil {
			return sample{}, err
		}
	}
	g, err := w.links.StartGenerator(frame, change)
	if err != nil {
		return sample{}, err
	}
	if fresh {
		long = min(long, longestNew(c.Change)-warmTime)
	}
	k, err := w.countSample(ctx, g, long)
	if sent, err2 := g.Sent(); err2 == nil && fresh {
		w.nextNew += uint32(sent)
	}
	if err = errors.Join(err, g.Stop()); err == nil && fresh {
		err = w.checkBegan(ctx, k.packets*float64(c.EntriesPerConnection()))
	}
	return k, err
}

// checkBegan returns errLost unless there are nearly so many conntrack entries.
func (w *ovsContender) checkBegan(ctx context.Context, entries float64) error {
	have, err := w.Connections(ctx)
	if err == nil && float64(have) < entries*mostOut {
		err = errLost
	}
	return err
}

// fewestPackets is how many packets a sample has at least. With fewer, the generator did not run.
const fewestPackets = 1000

// countSample lets a generator send for so long, and returns what a packet cost the polling thread. The
// error is errLost if there are too few packets, if they did not leave, or if they went through
// OpenFlow's tables.
func (w *ovsContender) countSample(ctx context.Context, g *testbed.Generator, long time.Duration) (k sample, err error) {
	if _, err := g.SendFor(ctx, ovsRate, warmTime); err != nil {
		return k, err
	}
	out, err := w.PacketsSent(ctx, testbed.Receiver().Name)
	if err != nil {
		return k, err
	}
	threads, err := w.Account(ctx, func() error {
		watch, err := sched.WatchThread(w.PID(), w.pollingThread)
		if err != nil {
			return err
		}
		_, err = g.SendFor(ctx, ovsRate, long)
		var err2 error
		k.disturbed, err2 = watch.DisturbedPart()
		sched.Nap(testbed.SettleTime) // packets under way are counted
		return errors.Join(err, err2)
	})
	if err != nil {
		return k, err
	}
	s := threads[0]
	k.packets = s.Packets
	k.nanoseconds = s.Busy / max(s.Packets, 1) / w.Hertz * 1e9
	came, err := w.waitSent(ctx, out+s.Packets*mostOut)
	if err == nil && (!came || s.Packets < fewestPackets || s.Upcalls > mostUpcalls*s.Packets) {
		err = errLost
	}
	return k, err
}

// mostUpcalls is the part of the packets that may go through OpenFlow's tables, which takes microseconds
// each. The datapath forgets flows while the switch rests. A switch that does not rest has them.
const mostUpcalls = 0.001

// mostOut is the part of the packets that must leave. Packets that the polling thread drops cost less than
// forwarded ones.
const mostOut = 0.95

// waitSent waits a while until the receiver's port has sent so many packets, and says whether it has.
func (w *ovsContender) waitSent(ctx context.Context, want float64) (bool, error) {
	for range tries {
		if sent, err := w.PacketsSent(ctx, testbed.Receiver().Name); err != nil || sent >= want {
			return err == nil, err
		}
		sched.Nap(testbed.SettleTime)
	}
	return false, nil
}
