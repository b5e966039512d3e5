package conntrack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// send sends n packets into the switch, and waits until they are through.
func (c *ovsSide) send(ctx context.Context, t tuples, n int) error {
	return c.sendBursts(ctx, t, n, ovsBurst, func(send func() error) error { return send() })
}

// sendAtOnce sends n packets in bursts. The switch is stopped until all packets of a burst are in the
// rings. Its threads must sleep when it is stopped: a stop while a thread reads its ring would count
// as work.
func (c *ovsSide) sendAtOnce(ctx context.Context, t tuples, n int) error {
	return c.sendBursts(ctx, t, n, ringBurst, func(send func() error) error {
		time.Sleep(ringPause)
		err := c.SetResting(true)
		if err == nil {
			err = send()
		}
		return errors.Join(err, c.SetResting(false))
	})
}

const (
	// ovsBurst is how many packets are made until the context is checked. The kernel takes tens of
	// milliseconds to begin a burst.
	ovsBurst = 1 << 17
	// ringBurst is how many packets fit into two rings of 2048 for certain.
	ringBurst = 3000
	// ringPause is enough for the threads to work off a burst and fall asleep.
	ringPause = 10 * time.Millisecond
)

// sendBursts sends n packets in bursts. It calls around for each, with the function that sends the burst.
func (c *ovsSide) sendBursts(ctx context.Context, t tuples, n, burst int, around func(send func() error) error) error {
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer counter.Close()
	program, err := t.program(c.from, counter)
	if err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	defer program.Close()
	for left := n; left > 0 && ctx.Err() == nil; left -= burst {
		err := around(func() error {
			_, err := program.Run(&ebpf.RunOptions{
				Data: newClientFrame(), Repeat: uint32(min(left, burst)), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	return ctx.Err()
}

// threadCycles is the cycles that a packet costs each thread.
type threadCycles []float64

// rate returns for how many million packets a second all threads together can do what costs them of
// instead of bare. It is NaN if a thread's difference is not above 0.
func (c *ovsSide) rate(of, bare threadCycles) (sum float64) {
	for i := range of {
		if of[i] <= bare[i] {
			return math.NaN()
		}
		sum += c.Hertz / 1e6 / (of[i] - bare[i])
	}
	return sum
}

// measureCycles sends n packets and returns what one costs each thread. Packets may be lost, but each
// thread must receive a tenth of its part.
func (c *ovsSide) measureCycles(ctx context.Context, t tuples, n int) (threadCycles, error) {
	least := float64(n) / 10 / float64(c.Threads)
	for range tries {
		all, err := c.Account(ctx, func() error { return c.sendMeasured(ctx, t, n) })
		if err != nil {
			return nil, err
		}
		var each threadCycles
		for _, s := range all {
			if s.Packets >= least {
				each = append(each, s.Busy/s.Packets)
			}
		}
		if len(each) == c.Threads {
			return each, nil
		}
	}
	return nil, fmt.Errorf("of %d packets not a tenth came through", n)
}
