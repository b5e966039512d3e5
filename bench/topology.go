package bench

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The links of the topology. The generator's frames come out of "in", which
// is forwarded to "out", and arrive at the sink.
const (
	sourceLink = "source"
	inLink     = "in"
	outLink    = "out"
	sinkLink   = "sink"
)

// topology is two veth pairs in the namespace of the thread that made it. Each
// run has its own: the library's Close leaves the rings mapped, so that its
// socket keeps the queue until the link is gone.
type topology struct {
	ns                    netns.NsHandle
	source, in, out, sink int          // link indexes
	spare                 *unix.CPUSet // processors that generators keep to; nil: all
}

// newTopology makes the links in ns, which must be the calling thread's.
func newTopology(ns netns.NsHandle) (*topology, error) {
	t := &topology{ns: ns}
	for _, pair := range [][2]string{{sourceLink, inLink}, {outLink, sinkLink}} {
		if err := addPair(pair[0], pair[1]); err != nil {
			return nil, errors.Join(fmt.Errorf("veth %s to %s: %w", pair[0], pair[1], err), t.close())
		}
	}
	for name, index := range map[string]*int{sourceLink: &t.source, inLink: &t.in, outLink: &t.out, sinkLink: &t.sink} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		*index = link.Attrs().Index
	}
	if err := joinPackets(inLink, outLink); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// joinPackets turns GRO on at links. It is not for the joining: a veth takes the
// generator's frames when its other end has a NAPI instance, which it has
// with an XDP program or with GRO.
func joinPackets(links ...string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	for _, link := range links {
		if err := e.Change(link, map[string]bool{"rx-gro": true}); err != nil {
			return fmt.Errorf("GRO of %s: %w", link, err)
		}
	}
	return nil
}

// processorsBut are those that a thread may not run on; nil when there are none.
func processorsBut(thread int) (*unix.CPUSet, error) {
	var its unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &its); err != nil {
		return nil, err
	}
	return otherProcessors(&its)
}

// otherProcessors are those that this process may run on but for these; nil when
// there are none.
func otherProcessors(but *unix.CPUSet) (*unix.CPUSet, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for cpu := range processors {
		if but.IsSet(cpu) {
			all.Clear(cpu)
		}
	}
	if all.Count() == 0 {
		return nil, nil
	}
	return &all, nil
}

// processors is how many a set has room for.
const processors = len(unix.CPUSet{}) * bits.UintSize

// reserve keeps generators to the first processor. Two threads that never sleep
// and have one real-time priority may otherwise share one for a tenth of a second
// in turns, while another is idle; the contender's is then kept off it (avoid).
func (t *topology) reserve() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return err
	}
	t.spare = new(unix.CPUSet)
	for cpu := range processors {
		if all.IsSet(cpu) {
			t.spare.Set(cpu)
			return nil
		}
	}
	return nil
}

// avoid keeps a thread of a process off the generators' processors until rejoin; 0 is
// none. Threads that Go begins have the processors of the one that began them, so that
// rejoin gives all of this process theirs back, but for the generator's.
func (t *topology) avoid(process string, thread, generator int) (rejoin func() error, err error) {
	rejoin = func() error { return nil }
	var its unix.CPUSet
	if t.spare == nil || thread == 0 {
		return rejoin, nil
	}
	others, err := otherProcessors(t.spare)
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
		threads, err := threadTimes(process)
		delete(threads, generator)
		for no := range threads {
			if e := unix.SchedSetaffinity(no, &its); e != nil && e != unix.ESRCH {
				err = errors.Join(err, fmt.Errorf("processors of thread %d: %w", no, e))
			}
		}
		return err
	}, nil
}

// addPair makes a veth pair of one queue each way, and sets both ends up.
func addPair(a, b string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = a, 1, 1
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: b}); err != nil {
		return err
	}
	for _, name := range []string{a, b} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return nil
}

// close deletes the links that there are; one end takes the other with it.
func (t *topology) close() error {
	var errs []error
	for _, name := range []string{sourceLink, outLink} {
		if link, err := netlink.LinkByName(name); err == nil {
			errs = append(errs, netlink.LinkDel(link))
		}
	}
	return errors.Join(errs...)
}

// arrived is how many frames have come out of the sink's end. It is read from
// /proc, which takes no lock: netlink would wait for whoever configures a link
// of any namespace, and that may be one whom the threads that never sleep keep
// from running.
func (t *topology) arrived() (uint64, error) {
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
