package answer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/ports/pcap"
)

// Replay runs a capture through a pipeline with ports in memory. The clock follows the capture,
// so that timeouts pass as they did.
type Replay struct {
	From pipeline.Source
	// In is the capture to read. Out is the capture to write, with every packet that leaves by
	// any port; "" for none.
	In, Out string
	// InPort is the port where packets enter, by name or number. If it is empty, a packet
	// enters by the port whose address in the source is the packet's source address.
	InPort string
	// Tunnels are the names of tunnel ports.
	Tunnels []string
}

// ReplayResult counts the outcomes of packets.
type ReplayResult struct {
	Read    int            // packets in the capture
	Cut     int            // packets of which the capture has only the beginning; left out
	Unknown int            // packets whose source address belongs to no port
	Left    map[string]int // packets that left, by port
	Drops   []api.Drop
}

// player is a Replay in progress.
type player struct {
	*Answers
	ports  map[uint32]*memory.Port
	inPort uint32 // 0: by source address
	byMAC  map[[6]byte]uint32
	out    *pcap.Writer
	now    int64
	result ReplayResult
}

// Run replays the whole capture.
func (r *Replay) Run() (result *ReplayResult, err error) {
	p := &player{result: ReplayResult{Left: map[string]int{}}}
	loaded, err := r.From.Load(pipeline.Options{Clock: func() int64 { return p.now }})
	if err != nil {
		return nil, err
	}
	p.Answers = New(loaded)
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.ports, err = p.addMemoryPorts(r.Tunnels); err != nil {
		return nil, err
	}
	if err := p.chooseInPort(r); err != nil {
		return nil, err
	}
	in, err := pcap.Open(r.In)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if sameFile(r.In, r.Out) {
		return nil, fmt.Errorf("%s: the capture to write is the one to read", r.Out)
	}
	if r.Out != "" {
		if p.out, err = pcap.Create(r.Out); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.out.Close()) }()
	}
	if err := p.play(in); err != nil {
		return nil, err
	}
	p.result.Drops = p.dropRecords()
	return &p.result, nil
}

// sameFile says whether both names are the same existing file.
func sameFile(a, b string) bool {
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// chooseInPort decides where packets enter.
func (p *player) chooseInPort(r *Replay) (err error) {
	if r.InPort == "" {
		p.byMAC, err = r.From.PortAddresses()
		return err
	}
	no, ok := p.Switch.Names().PortID(r.InPort)
	if !ok {
		n, err := strconv.ParseUint(r.InPort, 0, 32)
		if err != nil {
			return fmt.Errorf("there is no port %q", r.InPort)
		}
		no = uint32(n)
	}
	if p.ports[no] == nil {
		m := memory.New(r.InPort, memory.Options{})
		p.ports[no] = m
		err = p.Local.AddPort(no, m)
	}
	p.inPort = no
	return err
}

// play sends the packets to the switch.
func (p *player) play(in *pcap.Reader) error {
	var began time.Time
	for {
		c, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.result.Read++; p.result.Read == 1 {
			began = c.Time
		}
		if age := int64(c.Time.Sub(began)); age > p.now {
			p.now = age
			p.Local.Expire()
		}
		if c.Length > len(c.Bytes) {
			p.result.Cut++
			continue
		}
		if err := p.one(c.Bytes); err != nil {
			return fmt.Errorf("packet %d: %w", p.result.Read, err)
		}
		if err := p.collect(c.Time); err != nil {
			return err
		}
	}
}

// one sends a packet to the switch.
func (p *player) one(b []byte) error {
	no := p.inPort
	if no == 0 && len(b) >= packet.EthernetLen {
		no = p.byMAC[packet.Ethernet(b).Src()]
	}
	port := p.ports[no]
	if port == nil {
		p.result.Unknown++
		return nil
	}
	if err := port.Send(b); err != nil {
		return err
	}
	p.Local.Poll()
	return nil
}

// collect receives what the ports transmitted.
func (p *player) collect(at time.Time) error {
	var batch [32]*packet.Frame
	for _, port := range p.ports {
		for n := port.Collect(batch[:]); n > 0; n = port.Collect(batch[:]) {
			p.result.Left[port.Name()] += n
			err := p.write(at, batch[:n])
			packet.Release(batch[:n])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) write(at time.Time, frames []*packet.Frame) error {
	if p.out == nil {
		return nil
	}
	for _, f := range frames {
		if err := p.out.Write(at, f.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
