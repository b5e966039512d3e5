package forward

import (
	"errors"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/afxdp"
)

// asForwarder is a pair as a forwarder. A nil pair is a nil interface.
func asForwarder(p *portPair, err error) (forwarder, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// portPair is two ports of antrail.
type portPair struct {
	in, out ports.Port
	release func() error // releases what both ports share, after they are closed
	batch   [batchSize]*packet.Frame
}

// openPorts opens both ports.
func openPorts(open func(link string) (ports.Port, error), release func() error) (*portPair, error) {
	in, err := open(testbed.InLink)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	out, err := open(testbed.OutLink)
	if err != nil {
		return nil, errors.Join(err, in.Close(), release())
	}
	return &portPair{in: in, out: out, release: release}, nil
}

// openXDPPorts opens ports on AF_XDP. They share a UMEM, so that a frame is transmitted without a copy.
func openXDPPorts() (*portPair, error) {
	umem, err := afxdp.NewUMEM(4 * ringSlots)
	if err != nil {
		return nil, err
	}
	return openPorts(func(link string) (ports.Port, error) {
		p, err := afxdp.Open(umem, afxdp.Options{Interface: link, Mode: afxdp.Native, Ring: ringSlots})
		if err != nil {
			return nil, err // p would not be a nil interface
		}
		return p, nil
	}, umem.Close)
}

// openPacketPorts opens ports on packet sockets.
func openPacketPorts() (*portPair, error) {
	return openPorts(func(link string) (ports.Port, error) {
		p, err := afpacket.Open(afpacket.Options{Interface: link})
		if err != nil {
			return nil, err // p would not be a nil interface
		}
		return p, nil
	}, func() error { return nil })
}

// forwardBatch moves frames between the ports.
func (p *portPair) forwardBatch() (int, error) {
	n := p.in.Receive(p.batch[:])
	if n == 0 {
		return 0, nil
	}
	n = p.out.Transmit(p.batch[:n])
	p.out.Flush()
	return n, nil
}

// close closes both ports.
func (p *portPair) close() error {
	return errors.Join(p.in.Close(), p.out.Close(), p.release())
}
