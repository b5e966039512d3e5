package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/flow"
)

// ovsContender is Open vSwitch as a contender. Frames come in by an AF_XDP port and go out by a dummy
// port, which counts and drops them. Sending a frame into a veth would cost several times as much as
// the pipeline. The polling thread never sleeps, so the daemon is stopped while others are measured.
type ovsContender struct {
	*ovs.PollingSwitch
	links         *testbed.Topology
	node          *testbed.Node
	pollingThread int    // its number
	nextNew       uint32 // number of the next new connection
}

// markedMAC is the destination of frames that take the single entry.
var markedMAC = []byte{2, 0, 0, 0, 0, 0x99}

// openOVS starts a switch with a program. It rests.
func openOVS(ctx context.Context, p *flow.Program) (w *ovsContender, err error) {
	w = &ovsContender{PollingSwitch: &ovs.PollingSwitch{Threads: 1}}
	if w.node, err = testbed.NewNode(0); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	err = testbed.Within(w.node.NS)(func() (err error) { w.links, err = testbed.NewTopology(w.node.NS); return err })
	if err != nil {
		return w, err
	}
	if w.Switch, err = ovs.StartIn(ctx, w.node); err != nil {
		return w, err
	}
	if err := w.loadProgram(ctx, p); err != nil {
		return w, err
	}
	return w, w.SetResting(true)
}

// loadProgram adds ports, loads the program and the single entry, and calibrates the polling thread. It
// lowers that thread's priority, so that others need not wait for it.
func (w *ovsContender) loadProgram(ctx context.Context, p *flow.Program) error {
	ports := map[string]ovs.Port{testbed.Sender().Name: {Link: testbed.InLink, Kind: ovs.AFXDP}, testbed.Receiver().Name: {Link: testbed.Receiver().Name, Kind: "dummy"}}
	err := w.AddPorts(ctx, p, ports)
	if err == nil {
		w.pollingThread, err = sched.FindThread(w.PID(), "pmd")
	}
	if err == nil {
		err = sched.LowerPriority(w.pollingThread)
	}
	if err != nil {
		return err
	}
	if err := w.Load(ctx, p); err != nil {
		return err
	}
	for _, entry := range []string{
		fmt.Sprintf("table=0,priority=65535,in_port=%d,dl_dst=%s,actions=output:%d", testbed.Sender().OFPort, net.HardwareAddr(markedMAC).String(), testbed.Receiver().OFPort),
		// Frames of the receiver come by the same link, and are treated as if by its own port.
		fmt.Sprintf("table=0,priority=65534,in_port=%d,dl_src=%s,actions=load:%d->NXM_OF_IN_PORT[],resubmit(,0)",
			testbed.Sender().OFPort, net.HardwareAddr(testbed.AnswerFrame(64)[6:12]), testbed.Receiver().OFPort),
	} {
		if err := w.Ofctl(ctx, "add-flow", entry); err != nil {
			return err
		}
	}
	w.links.Spare, err = sched.ProcessorsWithout(w.pollingThread)
	return errors.Join(err, w.Calibrate(ctx))
}

// close ends the switch and gives the namespaces back.
func (w *ovsContender) close() error {
	var errs []error
	if w.Switch != nil {
		errs = append(errs, w.Switch.Close())
	}
	if w.links != nil {
		errs = append(errs, testbed.Within(w.node.NS)(w.links.Close))
	}
	return errors.Join(append(errs, w.node.Close())...)
}

// makeKnown removes all connections. Then it sends packets and answers until the switch has nearly as many
// entries as they need.
func (w *ovsContender) makeKnown(ctx context.Context, kinds []*workload.Packets) error {
	if _, err := w.Appctl(ctx, "dpctl/flush-conntrack"); err != nil {
		return err
	}
	want := 0
	for _, c := range kinds {
		want += int(c.Connections) * c.EntriesPerConnection()
	}
	for range tries {
		for range 2 { // once for the connection, once for what an answer changes
			for _, c := range kinds {
				if err := w.sendKnown(ctx, c); err != nil {
					return err
				}
			}
		}
		have, err := w.Connections(ctx)
		if err != nil || have >= want-want/50 {
			return err
		}
	}
	return fmt.Errorf("the switch has not got to know %d connections", want)
}

// sendKnown sends a packet of each connection, and its answers.
func (w *ovsContender) sendKnown(ctx context.Context, c *workload.Packets) error {
	if err := w.sendAll(ctx, c.Frame, c.Change, c.Connections); err != nil {
		return err
	}
	for _, a := range c.Answers {
		if err := w.sendAll(ctx, a, c.AnswerChange, c.Connections); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often packets are sent again that were lost, and how often their arrival is checked.
const tries = 20

// primeRate is a rate in frames a second at which usually none is lost.
const primeRate = 300_000

// sendAll sends a frame of each of the first connections.
func (w *ovsContender) sendAll(ctx context.Context, frame []byte, c testbed.PortChange, of uint32) error {
	if of == 1 {
		defer sched.Nap(testbed.SettleTime)
		return testbed.Within(w.node.NS)(func() error { return testbed.SendFrame(w.links.Source, frame) })
	}
	g, err := w.links.StartGenerator(frame, append(testbed.NumberInstructions(0, of), c.Instructions()...))
	if err != nil {
		return err
	}
	for sent := uint64(0); sent < uint64(of) && err == nil; {
		var n uint64
		n, err = g.SendFor(ctx, primeRate, time.Duration(uint64(of)-sent)*time.Second/primeRate)
		sent += n
	}
	return errors.Join(err, g.Stop())
}
