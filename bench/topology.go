package bench

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
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
	source, in, out, sink int // link indexes
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
	return t, nil
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

// arrived is how many frames have come out of the sink's end.
func (t *topology) arrived() (uint64, error) {
	link, err := netlink.LinkByIndex(t.sink)
	if err != nil {
		return 0, err
	}
	if link.Attrs().Statistics == nil {
		return 0, errors.New("the kernel gives no statistics of a veth")
	}
	return link.Attrs().Statistics.RxPackets, nil
}

// burst is how many frames one call of the generator makes.
const burst = 1 << 20

// generate makes frames on a thread of its own until stop is called. It is the
// kernel's own test run of an XDP program with live frames
// (BPF_F_TEST_XDP_LIVE_FRAMES), several million a second: more than any
// forwarder takes, so that the forwarder is what is measured.
func (t *topology) generate(size int) (stop func() error, err error) {
	program, err := redirectProgram(t.source)
	if err != nil {
		return nil, err
	}
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() { ended <- t.runGenerator(program, testFrame(size), &done) }()
	return func() error {
		done.Store(true)
		return errors.Join(<-ended, program.Close())
	}, nil
}

// runGenerator is the generator's thread, which ends with it.
func (t *topology) runGenerator(program *ebpf.Program, frame []byte, done *atomic.Bool) error {
	runtime.LockOSThread()
	if err := netns.Set(t.ns); err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	for !done.Load() {
		_, err := program.Run(&ebpf.RunOptions{Data: frame, Repeat: burst, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES})
		if err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	return nil
}

// redirectProgram sends every frame out of one link.
func redirectProgram(index int) (*ebpf.Program, error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "antrail_source", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, int32(index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	return program, nil
}

// testFrame is a broadcast of an experimental type, which no stack answers.
func testFrame(size int) []byte {
	b := make([]byte, size)
	copy(b, "\xff\xff\xff\xff\xff\xff\x02bench\x88\xb5")
	return b
}
