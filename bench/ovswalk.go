package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/flow"
)

// ovsWalk is Open vSwitch as a contender: frames come in by an AF_XDP port and
// go out by a dummy one, which counts them and throws them away, since to send a
// frame into a veth costs several times what the pipeline does. Its polling
// thread never rests, so the daemon is stopped while it is not measured.
type ovsWalk struct {
	*ovsConntrack
	node   *node
	stay   chan struct{} // closed when the daemons may end
	thread int           // the polling one
	next   uint32        // number of the next new connection
}

// markedMAC is where frames go that take the single entry.
var markedMAC = []byte{2, 0, 0, 0, 0, 0x99}

func openOVSWalk(ctx context.Context, p *flow.Program) (w *ovsWalk, err error) {
	w = &ovsWalk{ovsConntrack: &ovsConntrack{threads: 1}}
	if w.node, err = newNode(0); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	err = within(w.node.ns)(func() (err error) { w.net, err = newTopology(w.node.ns); return err })
	if err != nil {
		return w, err
	}
	if w.ovsSwitch, w.stay, err = w.node.startOVS(ctx); err != nil {
		return w, err
	}
	if err := w.prepare(ctx, p); err != nil {
		return w, err
	}
	return w, w.rests(true)
}

// prepare finds the thread, which others need not wait for, loads the program and
// finds the thread's clock.
func (w *ovsWalk) prepare(ctx context.Context, p *flow.Program) error {
	ports := map[string]ovsPort{sender().Name: {inLink, kindXDP}, receiver().Name: {receiver().Name, "dummy"}}
	err := w.addPorts(ctx, p, ports)
	if err == nil {
		w.thread, err = threadNamed(w.pid(), "pmd")
	}
	if err == nil {
		err = recede(w.thread)
	}
	if err != nil {
		return err
	}
	if err := w.load(ctx, p); err != nil {
		return err
	}
	for _, entry := range []string{
		fmt.Sprintf("table=0,priority=65535,in_port=%d,dl_dst=%s,actions=output:%d", sender().OFPort, macText(markedMAC), receiver().OFPort),
		// What the receiver sends comes by the same link as if by its own port.
		fmt.Sprintf("table=0,priority=65534,in_port=%d,dl_src=%s,actions=load:%d->NXM_OF_IN_PORT[],resubmit(,0)",
			sender().OFPort, macText(back(64)[6:12]), receiver().OFPort),
	} {
		if err := w.ofctl(ctx, "add-flow", entry); err != nil {
			return err
		}
	}
	w.net.spare, err = processorsBut(w.thread)
	return errors.Join(err, w.calibrate(ctx))
}

func macText(m []byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// close ends what there is of it.
func (w *ovsWalk) close() error {
	var errs []error
	if w.ovsSwitch != nil {
		errs = append(errs, w.ovsSwitch.close())
		close(w.stay)
	}
	if w.net != nil {
		errs = append(errs, within(w.node.ns)(w.net.close))
	}
	return errors.Join(append(errs, w.node.close())...)
}

// prime sends packets and answers until the switch has as many connections.
func (w *ovsWalk) prime(ctx context.Context, courses []*course) error {
	if _, err := w.appctl(ctx, "dpctl/flush-conntrack"); err != nil {
		return err
	}
	want := 0
	for _, c := range courses {
		want += int(c.of) * c.tracked()
	}
	for range tries {
		for range 2 { // one for the connection, one for what an answer changes
			for _, c := range courses {
				if err := w.know(ctx, c); err != nil {
					return err
				}
			}
		}
		have, err := w.connections(ctx)
		if err != nil || have >= want-want/50 {
			return err
		}
	}
	return fmt.Errorf("the switch has not got to know %d connections", want)
}

// know sends a packet of each connection of a course, and what answers it.
func (w *ovsWalk) know(ctx context.Context, c *course) error {
	if err := w.sendAll(ctx, c.frame, c.change, c.of); err != nil {
		return err
	}
	for _, a := range c.answers {
		if err := w.sendAll(ctx, a, c.answer, c.of); err != nil {
			return err
		}
	}
	return nil
}

// primeRate is the frames a second at which none is lost, as a rule.
const primeRate = 300_000

// sendAll sends a frame of each of so many connections.
func (w *ovsWalk) sendAll(ctx context.Context, frame []byte, c renewal, of uint32) error {
	if of == 1 {
		defer nap(settle)
		return within(w.node.ns)(func() error { return sendOne(w.net.source, frame) })
	}
	g, err := w.net.startGenerator(frame, append(numbered(0, of), c.instructions()...))
	if err != nil {
		return err
	}
	for sent := uint64(0); sent < uint64(of) && err == nil; {
		var n uint64
		n, err = g.sendFor(ctx, primeRate, time.Duration(uint64(of)-sent)*time.Second/primeRate)
		sent += n
	}
	return errors.Join(err, g.stop())
}

// ovsRate is more frames a second than the polling thread can take, so that it
// has full batches, as under load. What it has no room for is lost before it
// counts.
const ovsRate = 2_000_000

// warmTime is how long packets flow before they are counted.
const warmTime = 10 * time.Millisecond

// longest is how long packets can flow until a connection's comes again, with a
// reserve. The second packet of one that was not answered is no first one: that
// to a ClusterIP would have its address translated at once, and go the way of
// packets for the gateway.
func (c renewal) longest() time.Duration {
	connections := 1 << (2 * renewBits)
	if c == changeSource {
		connections = sources
	}
	return time.Duration(connections) * time.Second / ovsRate * 9 / 10
}

func (w *ovsWalk) window(ctx context.Context, c *course, base bool, long time.Duration) (cost, error) {
	frame, change := c.frame, append(numbered(w.next, c.of), c.change.instructions()...)
	if base {
		frame, change = append(append([]byte{}, markedMAC...), c.frame[6:]...), nil
	}
	fresh := c.of == 0 && !base
	if fresh { // what is known is forgotten, and the new ones of a window before
		if _, err := w.appctl(ctx, "dpctl/flush-conntrack"); err != nil {
			return cost{}, err
		}
	}
	g, err := w.net.startGenerator(frame, change)
	if err != nil {
		return cost{}, err
	}
	if fresh {
		long = min(long, c.change.longest()-warmTime)
	}
	k, err := w.count(ctx, g, long)
	if p, err2 := g.read(); err2 == nil && fresh {
		w.next += uint32(p.Sent)
	}
	if err = errors.Join(err, g.stop()); err == nil && fresh {
		err = w.began(ctx, k.packets*float64(c.tracked()))
	}
	return k, err
}

// began is errLost unless nearly all of so many entries of conntrack are there.
func (w *ovsWalk) began(ctx context.Context, entries float64) error {
	have, err := w.connections(ctx)
	if err == nil && float64(have) < entries*mostOut {
		err = errLost
	}
	return err
}

// fewestPackets is of a window that counts: with fewer, the generator did not run.
const fewestPackets = 1000

// count lets a generator send for a window, and returns what each packet cost
// the polling thread. With too few packets, when they did not come out again, or when
// they went through OpenFlow's tables and not the datapath's, the error is errLost.
func (w *ovsWalk) count(ctx context.Context, g *generator, long time.Duration) (k cost, err error) {
	if _, err := g.sendFor(ctx, ovsRate, warmTime); err != nil {
		return k, err
	}
	out, err := w.sentOut(ctx)
	if err != nil {
		return k, err
	}
	threads, err := w.account(ctx, func() error {
		watch, err := watchThread(w.pid(), w.thread)
		if err != nil {
			return err
		}
		_, err = g.sendFor(ctx, ovsRate, long)
		var err2 error
		k.disturbed, err2 = watch.part()
		nap(settle) // what is under way is counted
		return errors.Join(err, err2)
	})
	if err != nil {
		return k, err
	}
	s := threads[0]
	k.packets = s.packets
	k.nanoseconds = s.busy / max(s.packets, 1) / w.hertz * 1e9
	came, err := w.haveSent(ctx, out+s.packets*mostOut)
	if err == nil && (!came || s.packets < fewestPackets || s.upcalls > mostUpcalls*s.packets) {
		err = errLost
	}
	return k, err
}

// mostUpcalls is the part of the packets that may go through OpenFlow's tables,
// which takes microseconds each: the datapath forgets flows while the switch rests,
// and a switch that does not rest has them.
const mostUpcalls = 0.001

// mostOut is the part of the packets that must come out: what the polling thread
// loses to its tables is no cost of forwarding.
const mostOut = 0.95

// haveSent waits for a while until the receiver's port has got so many packets,
// and says whether it has.
func (w *ovsWalk) haveSent(ctx context.Context, want float64) (bool, error) {
	for range tries {
		if sent, err := w.sentOut(ctx); err != nil || sent >= want {
			return err == nil, err
		}
		nap(settle)
	}
	return false, nil
}

// sentOut is how many packets the receiver's port has got. The switch is asked
// itself: under chrt the threads that never sleep leave no processor to a program
// that would have to be started and reaped meanwhile.
func (w *ovsWalk) sentOut(ctx context.Context) (float64, error) {
	text, err := w.appctl(ctx, "dpctl/show", "-s", "netdev@ovs-netdev")
	if err != nil {
		return 0, err
	}
	return parseSent(text, receiver().Name)
}

// parseSent finds what a port has sent in what dpctl/show -s says.
func parseSent(text, port string) (float64, error) {
	_, its, _ := strings.Cut(text, ": "+port+" ")
	_, sent, found := strings.Cut(its, "TX packets:")
	number, _, _ := strings.Cut(sent, " ")
	if !found {
		return 0, fmt.Errorf("dpctl/show tells of no packets that %s sent:\n%s", port, text)
	}
	return strconv.ParseFloat(number, 64)
}
