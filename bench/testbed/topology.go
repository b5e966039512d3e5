package testbed

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The links of a topology. The generator sends frames into the source. They come out of InLink. The
// contender forwards them to OutLink, and they arrive at the sink.
const (
	sourceLink = "source"
	// InLink is where the contender receives.
	InLink = "in"
	// OutLink is where the contender transmits.
	OutLink  = "out"
	sinkLink = "sink"
)

// Topology is two veth pairs in one namespace. Each run has its own, because the closed library slavc/xdp
// leaves its rings mapped. Its socket keeps the queue until the link is gone.
type Topology struct {
	ns netns.NsHandle
	// Source, In, Out and Sink are link indexes.
	Source, In, Out, Sink int
	// Spare is the processors that generators keep to; nil means all.
	Spare *unix.CPUSet
}

// NewTopology makes the links in ns, which must be the calling thread's namespace.
func NewTopology(ns netns.NsHandle) (*Topology, error) {
	t := &Topology{ns: ns}
	for _, pair := range [][2]string{{sourceLink, InLink}, {OutLink, sinkLink}} {
		if err := AddVethPair(pair[0], pair[1]); err != nil {
			return nil, errors.Join(fmt.Errorf("veth %s to %s: %w", pair[0], pair[1], err), t.Close())
		}
	}
	for name, index := range map[string]*int{sourceLink: &t.Source, InLink: &t.In, OutLink: &t.Out, sinkLink: &t.Sink} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		*index = link.Attrs().Index
	}
	if err := turnOnGRO(InLink, OutLink); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// ReserveProcessor keeps generators to the first processor of several. KeepOffGenerator keeps the
// contender off that processor. Otherwise two polling threads of one real-time priority may share a
// processor, in turns of a tenth of a second, while another is idle.
func (t *Topology) ReserveProcessor() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return err
	}
	t.Spare = new(unix.CPUSet)
	for cpu := range sched.MaxProcessors {
		if all.IsSet(cpu) {
			t.Spare.Set(cpu)
			return nil
		}
	}
	return nil
}

// KeepOffGenerator keeps a thread of a process off the generators' processors until rejoin is called. For
// thread 0, and without reserved processors, it does nothing. Threads inherit their processors from
// the thread that begins them. So if process is "self", rejoin resets all threads but the generator.
func (t *Topology) KeepOffGenerator(process string, thread, generator int) (rejoin func() error, err error) {
	rejoin = func() error { return nil }
	var its unix.CPUSet
	if t.Spare == nil || thread == 0 {
		return rejoin, nil
	}
	others, err := sched.OtherProcessors(t.Spare)
	if err != nil || others == nil {
		return rejoin, err
	}
	if err := errors.Join(unix.SchedGetaffinity(thread, &its), unix.SchedSetaffinity(thread, others)); err != nil {
		return rejoin, fmt.Errorf("processors of thread %d: %w", thread, err)
	}
	return func() error {
		if process != "self" {
			return unix.SchedSetaffinity(thread, &its)
		}
		threads, err := sched.ThreadTimes(process)
		delete(threads, generator)
		for no := range threads {
			if e := unix.SchedSetaffinity(no, &its); e != nil && e != unix.ESRCH {
				err = errors.Join(err, fmt.Errorf("processors of thread %d: %w", no, e))
			}
		}
		return err
	}, nil
}

// Close deletes the links. The other end of a veth goes with it.
func (t *Topology) Close() error {
	var errs []error
	for _, name := range []string{sourceLink, OutLink} {
		if link, err := netlink.LinkByName(name); err == nil {
			errs = append(errs, netlink.LinkDel(link))
		}
	}
	return errors.Join(errs...)
}

// Arrived is how many frames have arrived at the sink. The calling thread must be in the topology's
// namespace. It reads /proc, which takes no lock. Netlink would wait for any thread that configures a
// link, which threads that never sleep may keep from running.
func (t *Topology) Arrived() (uint64, error) {
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, counts, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != sinkLink {
			continue
		}
		fields := strings.Fields(counts) // bytes and packets received, ...
		if len(fields) < 2 {
			return 0, fmt.Errorf("/proc/net/dev has no counts of %s", sinkLink)
		}
		return strconv.ParseUint(fields[1], 10, 64)
	}
	return 0, fmt.Errorf("/proc/net/dev has no %s", sinkLink)
}

const (
	// SettleTime is how long no frame must arrive until none is considered under way.
	SettleTime = 5 * time.Millisecond
	// longestSettle is how long frames may still arrive after all were sent.
	longestSettle = time.Second
)

// SettledArrivals waits until no more frames arrive, and returns how many have arrived.
func (t *Topology) SettledArrivals() (uint64, error) {
	last, err := t.Arrived()
	for end := time.Now().Add(longestSettle); err == nil && time.Now().Before(end); {
		sched.Nap(SettleTime)
		var n uint64
		if n, err = t.Arrived(); n == last {
			break
		}
		last = n
	}
	return last, err
}
