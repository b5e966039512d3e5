package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The generator is the kernel's own test run of an XDP program with live frames
// (BPF_F_TEST_XDP_LIVE_FRAMES): several million a second into a veth from one
// thread, more than any forwarder takes, so that the forwarder is what is
// measured. To begin a test run takes up to some ten milliseconds, so there is
// one as long as the generator lives, and the program keeps the pace: a frame
// that is not due yet it drops.

// The pods between which frames of profiles forward and pipeline go: db-a sends
// to client-a, which no policy of examples/two-nodes denies although all tables
// of policies are passed.
func sender() lab.Pod   { return lab.TwoNodes().Nodes[0].Pods[2] }
func receiver() lab.Pod { return lab.TwoNodes().Nodes[0].Pods[0] }

// The ports of the one known connection, and where frames have them.
const (
	knownSrc, knownDst = 1000, 2000
	udpAt              = packet.EthernetLen + packet.IPv4Len
)

// udpFrame is a UDP frame of so many bytes from one pod to another, without a
// UDP checksum, which IPv4 allows: ports can be changed in place.
func udpFrame(from, to lab.Pod, src, dst uint16, size int) []byte {
	b := make([]byte, size)
	e := packet.Ethernet(b)
	copy(b[:6], to.MAC[:])
	copy(b[6:12], from.MAC[:])
	e.SetType(packet.EtherTypeIPv4)
	ip := packet.IPv4(b[packet.EthernetLen:])
	ip.Init()
	ip.SetTotalLen(uint16(len(ip)))
	ip.SetTTL(64)
	ip.SetProto(packet.ProtoUDP)
	copy(ip.SrcBytes(), from.Address.V4.AsSlice())
	copy(ip.DstBytes(), to.Address.V4.AsSlice())
	ip.UpdateChecksum()
	u := packet.UDP(b[udpAt:])
	u.SetSrcPort(src)
	u.SetDstPort(dst)
	u.SetLength(uint16(len(u)))
	return b
}

// there and back are frames of the known connection.
func there(size int) []byte { return udpFrame(sender(), receiver(), knownSrc, knownDst, size) }
func back(size int) []byte  { return udpFrame(receiver(), sender(), knownDst, knownSrc, size) }

// The ports of the n-th new connection.
const (
	renewBits = 15
	lowest    = 1 << renewBits // the port of number 0
)

// renew gives a frame the ports of the n-th new connection.
func renew(frame []byte, n uint32) {
	const mask = 1<<renewBits - 1
	binary.BigEndian.PutUint32(frame[udpAt:], (lowest+n>>renewBits&mask)<<16|(lowest+n&mask))
}

// mix is frames, and how many of each size there are in a lot.
type mix struct {
	name  string
	sizes []mixed // the largest first
}

type mixed struct{ size, parts int }

// frame is the largest frame of the mix. Of several sizes the headers are those
// of the smallest: what follows is padding.
func (m *mix) frame() []byte {
	frame := make([]byte, m.sizes[0].size)
	copy(frame, there(m.sizes[len(m.sizes)-1].size))
	return frame
}

// pacing is what the generator's program and its user share; the kernel knows
// it as an array of one element.
type pacing struct {
	Interval uint64 // nanoseconds from frame to frame
	Due      uint64 // when the next is to be sent, by the kernel's monotonic clock
	End      uint64 // from when on none is sent, by the same clock
	Sent     uint64
	Runs     uint64 // 1 once the program runs
}

// Where pacing has its fields.
const (
	intervalAt = 8 * iota
	dueAt
	endAt
	sentAt
	runsAt
	pacingSize
)

// burstTime is what the generator makes up for when it was away: not more than
// rings hold.
const burstTime = 250 * time.Microsecond

// generator sends frames out of a link until it is stopped.
type generator struct {
	program *ebpf.Program
	state   *ebpf.Map
	thread  atomic.Int64 // its number while a test run is under way
	done    atomic.Bool
	ended   chan error
}

// startGenerator starts a generator that sends nothing yet. Its frames are like
// the one given but for what some instructions change: the context is in R6, how
// many frames there were before in R8.
func (t *topology) startGenerator(frame []byte, change asm.Instructions) (*generator, error) {
	g := &generator{ended: make(chan error, 1)}
	var err error
	if g.state, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: pacingSize, MaxEntries: 1}); err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	program := append(append(paceInstructions(g.state), change...), redirect(t.source)...)
	program = append(program, asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), asm.Return()) // XDP_DROP
	if g.program, err = loadGenerator(program); err != nil {
		return nil, errors.Join(err, g.state.Close())
	}
	go func() { g.ended <- g.runGenerator(t, frame) }() // or leave does
	if err := g.await(); err != nil {
		return nil, errors.Join(err, g.stop())
	}
	return g, nil
}

// generatorPatience is how long a test run may take to begin on a busy machine.
const generatorPatience = 10 * time.Second

// await returns once the generator's program runs, or its thread has ended.
func (g *generator) await() error {
	for end := time.Now().Add(generatorPatience); ; nap(time.Millisecond) {
		p, err := g.read()
		if err != nil || p.Runs != 0 {
			return err
		}
		if time.Now().After(end) {
			return errors.New("generator: the test run does not begin")
		}
		select {
		case err := <-g.ended:
			g.ended <- err // for stop
			return err
		default:
		}
	}
}

// testRuns is the frames of a test run: seconds. It ends earlier by a signal.
const testRuns = 1 << 25

// runGenerator is the generator's thread, which ends with it.
func (g *generator) runGenerator(t *topology, frame []byte) error {
	runtime.LockOSThread()
	err := netns.Set(t.ns)
	if err == nil && t.spare != nil {
		err = unix.SchedSetaffinity(0, t.spare)
	}
	if err = errors.Join(err, recede(0)); err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	g.thread.Store(int64(unix.Gettid()))
	//lint:ignore SA1019 it is the only way to leave a test run that a signal has ended
	options := ebpf.RunOptions{Data: frame, Repeat: testRuns, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES, Reset: g.leave}
	for !g.done.Load() {
		if _, err := g.program.Run(&options); err != nil {
			return fmt.Errorf("generator: %w", err)
		}
	}
	return nil
}

// leave is called when a signal has ended a test run, which would begin again:
// the way out of there is to end the goroutine, with its thread.
func (g *generator) leave() {
	if g.done.Load() {
		g.ended <- nil
		runtime.Goexit()
	}
}

// stop ends the generator. The signal that ends the test run is one that Go
// ignores; it is sent again, for it may come between two test runs.
func (g *generator) stop() error {
	g.done.Store(true)
	for {
		if thread := g.thread.Load(); thread != 0 {
			_ = unix.Tgkill(unix.Getpid(), int(thread), unix.SIGURG)
		}
		select {
		case err := <-g.ended:
			return errors.Join(err, g.program.Close(), g.state.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// start makes the generator send so many frames a second until window is over.
// It is the kernel's program that ends it then, whenever this process comes to
// run again.
func (g *generator) start(rate float64, window time.Duration) error {
	p, err := g.read()
	if err != nil {
		return err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	p.Interval, p.Due, p.End = uint64(1e9/rate), 0, uint64(now.Nano()+window.Nanoseconds())
	return g.state.Put(uint32(0), p)
}

// halt makes the generator send nothing any more.
func (g *generator) halt() error {
	p, err := g.read()
	if err != nil {
		return err
	}
	p.End = 0
	return g.state.Put(uint32(0), p)
}

func (g *generator) read() (p pacing, err error) {
	return p, g.state.Lookup(uint32(0), &p)
}

// sendFor sends at a rate for so long and returns how many frames were sent.
func (g *generator) sendFor(ctx context.Context, rate float64, window time.Duration) (sent uint64, err error) {
	before, err := g.read()
	if err != nil {
		return 0, err
	}
	if err := g.start(rate, window); err != nil {
		return 0, err
	}
	nap(window)
	after, err := g.read()
	return after.Sent - before.Sent, errors.Join(err, ctx.Err())
}

// nap sleeps in the kernel. A timer of Go's would need a thread of its
// scheduler to run, which those that never sleep may keep from doing so.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}

// precede raises the real-time priority of the calling thread by one, if it has
// one, for it steers threads that never sleep; lower ends that.
func precede() (lower func() error, err error) {
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil || was.Priority == 0 {
		return func() error { return nil }, err
	}
	above := *was
	above.Priority++
	return func() error { return unix.SchedSetAttr(0, was, 0) }, unix.SchedSetAttr(0, &above, 0)
}

// recede lowers the real-time priority of a thread by one, if it has one above
// the least; 0 is the calling thread. It is for those that never sleep: whoever
// has their priority and their processor else waits a tenth of a second for it.
func recede(thread int) error {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Priority < 2 {
		return err
	}
	a.Priority--
	return unix.SchedSetAttr(thread, a, 0)
}

// paceInstructions drop a frame that is not due, and count one that is. The
// context stays in R6, the frame's number in R8.
func paceInstructions(state *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, state.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, runsAt, asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R7, endAt, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "drop"),
		asm.LoadMem(asm.R1, asm.R7, intervalAt, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, dueAt, asm.DWord),
		asm.JGT.Reg(asm.R2, asm.R0, "drop"),
		asm.Sub.Imm(asm.R0, int32(burstTime)),
		asm.JGE.Reg(asm.R2, asm.R0, "due"), // what should have been sent before is forgotten
		asm.Mov.Reg(asm.R2, asm.R0),
		asm.Add.Reg(asm.R2, asm.R1).WithSymbol("due"),
		asm.StoreMem(asm.R7, dueAt, asm.R2, asm.DWord),
		asm.LoadMem(asm.R8, asm.R7, sentAt, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, sentAt, asm.R1, asm.DWord),
	}
}

// portsAt leaves the beginning of the frame in R7, when it has ports.
func portsAt() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), // data
		asm.LoadMem(asm.R2, asm.R6, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Imm(asm.R3, udpAt+4),
		asm.JGT.Reg(asm.R3, asm.R2, "drop"),
	}
}

// portInstructions are renew for the kernel; order may exchange the ports, which
// are the halves of R1.
func portInstructions(order ...asm.Instruction) asm.Instructions {
	const mask = 1<<renewBits - 1
	list := append(portsAt(),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.RSh.Imm(asm.R1, renewBits),
		asm.And.Imm(asm.R1, mask),
		asm.Add.Imm(asm.R1, lowest),
		asm.LSh.Imm(asm.R1, 16),
		asm.Mov.Reg(asm.R2, asm.R8),
		asm.And.Imm(asm.R2, mask),
		asm.Add.Imm(asm.R2, lowest),
		asm.Or.Reg(asm.R1, asm.R2))
	return append(append(list, order...),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.StoreMem(asm.R7, udpAt, asm.R1, asm.Word))
}

// instructions shorten a frame to the size that is its turn.
func (m *mix) instructions() (list asm.Instructions) {
	if len(m.sizes) == 1 {
		return nil
	}
	lot := 0
	for _, s := range m.sizes {
		lot += s.parts
	}
	list = asm.Instructions{asm.Mod.Imm(asm.R8, int32(lot)), asm.Mov.Imm(asm.R2, 0)}
	before := 0
	for i, s := range m.sizes[:len(m.sizes)-1] {
		before += s.parts
		list = append(list,
			asm.JLT.Imm(asm.R8, int32(before), "cut"),
			asm.Mov.Imm(asm.R2, int32(m.sizes[i+1].size-m.sizes[0].size)))
	}
	return append(list,
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("cut"),
		asm.FnXdpAdjustTail.Call())
}

// redirect sends the frame out of a link.
func redirect(link int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(link)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}
}

func loadGenerator(program asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "antrail_source", Type: ebpf.XDP, License: "GPL", Instructions: program})
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	return p, nil
}

// sendOne sends one frame out of a link of the calling thread's namespace.
func sendOne(link int, frame []byte) error {
	p, err := loadGenerator(redirect(link))
	if err != nil {
		return err
	}
	defer p.Close()
	_, err = p.Run(&ebpf.RunOptions{Data: frame, Repeat: 1, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES})
	return err
}
