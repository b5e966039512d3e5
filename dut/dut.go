// Package dut lets another program drive a switch packet by packet, to compare
// it with Open vSwitch. Each line in and out is a JSON object. Ports are in
// memory, and only the other program advances the clock.
//
//	{"op":"reset","flows":[…],"groups":[…],"meters":[…]}   -> {}
//	{"op":"rx","port":1,"hex":"…"}                         -> {"out":{"11":["…"]}}
//	{"op":"warp","ms":30000}                               -> {}
//	{"op":"ct"}                                            -> {"ct":["tcp,orig=…"]}
//	{"op":"ctl","args":["dpctl/ct-set-limits","zone=7,limit=2"]} -> {"ctl":"…"}
//
// A call that cannot be done is answered with {"error":"…"}, and the switch is
// as it was before it.
package dut

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// maxLine bounds one request: a pipeline of a hundred thousand entries fits.
const maxLine = 64 << 20

// maxWarp bounds one turn of the clock, in milliseconds: ten years.
const maxWarp = 10 * 365 * 24 * 3600 * 1000

// lastPort is the highest port number that exists.
const lastPort = 64

// DUT is a device under test.
type DUT struct {
	timeouts proto.Timeouts
	cache    int // as dataplane.Config.Cache
	now      int64
	sw       *dataplane.Switch
	ct       *conntrack.Table
	ports    map[uint32]*memory.Port
}

// New makes a device with an empty pipeline. Its clock stands at one hour, so
// that nothing is younger than the clock. cache is that of dataplane.Config: 0
// for the usual exact-match cache, -1 for none.
func New(timeouts proto.Timeouts, cache int) (*DUT, error) {
	d := &DUT{timeouts: timeouts, cache: cache, now: int64(time.Hour)}
	return d, d.reset(request{})
}

type request struct {
	Op     string   `json:"op"`
	Flows  []string `json:"flows"`
	Groups []string `json:"groups"`
	Meters []string `json:"meters"`
	Port   uint32   `json:"port"`
	Hex    string   `json:"hex"`
	MS     int64    `json:"ms"`
	Args   []string `json:"args"`
}

type reply struct {
	Out   map[uint32][]string `json:"out,omitempty"`
	CT    *[]string           `json:"ct,omitempty"`
	Ctl   *string             `json:"ctl,omitempty"`
	Error string              `json:"error,omitempty"`
}

// Serve answers requests from r on w until r ends.
func (d *DUT) Serve(r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	out := json.NewEncoder(w)
	for lines.Scan() {
		rep, err := d.do(lines.Bytes())
		if err != nil {
			rep = reply{Error: err.Error()}
		}
		if err := out.Encode(rep); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (d *DUT) do(line []byte) (reply, error) {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return reply{}, fmt.Errorf("not a request: %w", err)
	}
	switch q.Op {
	case "reset":
		return reply{}, d.reset(q)
	case "rx":
		return d.receive(q)
	case "warp":
		if q.MS < 0 || q.MS > maxWarp {
			return reply{}, fmt.Errorf("the clock cannot go %d ms on; 0 to %d it can", q.MS, int64(maxWarp))
		}
		d.now += q.MS * int64(time.Millisecond)
		d.sw.Expire()
		return reply{}, nil
	case "ct":
		rows := d.connections()
		return reply{CT: &rows}, nil
	case "ctl":
		text, err := d.control(q.Args)
		return reply{Ctl: &text}, err
	}
	return reply{}, fmt.Errorf("unknown op %q: reset, rx, warp, ct or ctl", q.Op)
}

// reset starts a new switch with the given pipeline; the clock goes on.
func (d *DUT) reset(q request) error {
	p, err := readProgram(q)
	if err != nil {
		return err
	}
	clock := func() int64 { return d.now }
	ct := conntrack.NewTable(conntrack.Config{Timeouts: d.timeouts, Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Cache: d.cache})
	if err != nil {
		return err
	}
	if err := sw.Apply(flow.BundleOf(p)); err != nil {
		return errors.Join(err, sw.Close())
	}
	ps := make(map[uint32]*memory.Port)
	for no := uint32(1); no <= lastPort; no++ {
		ps[no] = memory.New(fmt.Sprintf("p%d", no), memory.Options{})
		if err := sw.AddPort(no, ps[no]); err != nil {
			return errors.Join(err, sw.Close())
		}
	}
	if d.sw != nil {
		err = d.sw.Close()
	}
	d.sw, d.ct, d.ports = sw, ct, ps
	return err
}

// readProgram parses the lines of a reset. alg= is taken off: this switch has no
// application layer gateways, and what it does without one is the comparison.
func readProgram(q request) (*flow.Program, error) {
	p, err := parse.Program(parse.Sources{
		Flows:  parse.Text("flows", strings.Join(q.Flows, "\n")),
		Groups: parse.Text("groups", strings.Join(q.Groups, "\n")),
		Meters: parse.Text("meters", strings.Join(q.Meters, "\n")),
	})
	if err != nil {
		return nil, err
	}
	for _, e := range p.Entries {
		for _, a := range e.Actions {
			if ct, ok := a.(*flow.CT); ok {
				ct.ALG = ""
			}
		}
	}
	return p, nil
}

// receive gives the switch one frame and collects what it sends.
func (d *DUT) receive(q request) (reply, error) {
	b, err := hex.DecodeString(q.Hex)
	if err != nil {
		return reply{}, fmt.Errorf("hex: %w", err)
	}
	in := d.ports[q.Port]
	if in == nil {
		return reply{}, fmt.Errorf("there is no port %d; ports are 1 to %d", q.Port, lastPort)
	}
	if err := in.Send(b); err != nil {
		return reply{}, err
	}
	d.sw.Poll()
	out := make(map[uint32][]string)
	for no, p := range d.ports {
		for _, b := range collect(p) {
			out[no] = append(out[no], hex.EncodeToString(b))
		}
	}
	return reply{Out: out}, nil
}

// collect takes the frames that a port transmitted.
func collect(p *memory.Port) [][]byte {
	var frames [][]byte
	var batch [32]*packet.Frame
	for n := p.Collect(batch[:]); n > 0; n = p.Collect(batch[:]) {
		for _, f := range batch[:n] {
			frames = append(frames, slices.Clone(f.Bytes()))
		}
		packet.Release(batch[:n])
	}
	return frames
}

// connections lists the connections as dpctl/dump-conntrack -s does.
func (d *DUT) connections() []string {
	rows := []string{}
	for c := range d.ct.Dump(conntrack.Filter{}) {
		rows = append(rows, c.Verbose())
	}
	return rows
}
