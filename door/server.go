package door

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// PortOpener opens the ports of a switch, and sets up its tunnel.
type PortOpener interface {
	// OpenPort opens a port, or keeps one that was opened in the same way. The error is
	// ErrConfined if the switch may not open it.
	OpenPort(*PortSpec) error
	// GivePort makes a port of descriptors, which belong to the switch from then on, also
	// after an error.
	GivePort(p *PortSpec, fds []int) error
	// LendPort calls use with the descriptors of a port, which stay the switch's, and with the
	// reason for its driver. There are none if another switch could not use them after this one
	// was killed.
	LendPort(no uint32, use func(why string, fds []int))
	// PausePorts stops receiving until resume is called.
	PausePorts() (resume func())
	// Programs are descriptors of the filter and the ingress program for a packet socket that the
	// controller gives. With a kind of tunnel, it is the program of that tunnel's link, and with
	// a driver, that of its device. It is nil for none. They stay the switch's.
	Programs(ProgramsQuery) []int
	// Confined reports whether OpenPort opens no ports.
	Confined() bool
	// Cards is the AF_XDP setup of cards.
	Cards() Cards
	SetTunnelPeers([]TunnelPeer) error
	SetTunnelSilent([]netip.Addr) error
	// SetTunnelEgresses sets the addresses of Egresses. The error is ErrConfined if the switch
	// may not receive at one of them.
	SetTunnelEgresses(*TunnelEgresses) error
	// GiveEgresses does the same with receiving sockets, which belong to the switch from then on,
	// also after an error.
	GiveEgresses(e *TunnelEgresses, fds []int) error
	// TunnelPathMTU is the inner MTU to a Node.
	TunnelPathMTU(node netip.Addr) (int, error)
}

// Server answers for a switch. Any goroutine may use it.
type Server struct {
	sw      Switch
	open    PortOpener
	clock   func() int64
	release string
	// Settings and PauseNS are SwitchInfo's. Set them before the first request.
	Settings json.RawMessage
	PauseNS  int64
	// instance identifies this process of the switch.
	instance string
	classes  classes
	kept     atomic.Uint64 // see SwitchInfo.Kept
	// frozen is set while another switch takes over. Requests that change the switch hold the
	// read lock of changing.
	changing    sync.RWMutex
	frozen      bool
	controllers controllers
	held        held
}

// NewServer makes a server for a switch with its clock. release is the program's version.
func NewServer(sw Switch, open PortOpener, clock func() int64, release string) *Server {
	return &Server{sw: sw, open: open, clock: clock, release: release, instance: newToken(), controllers: controllers{onAway: func(bool) {}, onTTL: func(bool) {}}}
}

// OnController sets f to be called when a controller connects or leaves. Call it before the first
// request.
func (s *Server) OnController(f func(connected bool)) {
	s.controllers.onAway = func(away bool) { f(!away) }
}

// SetKept records the generation of the pipeline in the switch's file.
func (s *Server) SetKept(generation uint64) { s.kept.Store(generation) }

// Freeze starts or stops refusing requests that change the switch. It returns when none is under
// way.
func (s *Server) Freeze(frozen bool) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.frozen = frozen
}

// SendEvent sends an event to the controller, if one is connected. It never waits.
func (s *Server) SendEvent(e Event) { s.controllers.sendEvent(e) }

// Handler is the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.addPipeline(mux)
	s.addPorts(mux)
	s.addPackets(mux)
	s.addConnections(mux)
	answer(mux, "GET /v1/switch", func(*http.Request) (any, error) { return s.info(), nil })
	answer(mux, "GET /v1/workers", func(*http.Request) (any, error) { return s.sw.Workers(), nil })
	answer(mux, "GET /v1/cache", func(*http.Request) (any, error) { return s.sw.Cache(), nil })
	answer(mux, "GET /v1/cache/shapes", func(*http.Request) (any, error) { return s.sw.CacheShapes(), nil })
	answer(mux, "GET /v1/fragments", func(*http.Request) (any, error) { return s.sw.Fragments(), nil })
	answer(mux, "GET /v1/offload", func(*http.Request) (any, error) {
		return OffloadAnswer{s.sw.OffloadStats(), s.sw.OffloadOff()}, nil
	})
	mux.HandleFunc("POST /v1/controller", s.controllers.serve)
	return mux
}

func (s *Server) info() *SwitchInfo {
	i := &SwitchInfo{
		Settings: s.Settings, PauseNS: s.PauseNS,
		API: Version, Oldest: Version, Release: s.release, Instance: s.instance, PID: os.Getpid(), Controller: s.controllers.name(),
		PipelineInfo: s.pipelineInfo(), Kept: s.kept.Load(), ClockNS: s.clock(), OffloadOff: s.sw.OffloadOff(),
	}
	if s.open != nil {
		i.Confined, i.Cards = s.open.Confined(), s.open.Cards()
	}
	return i
}

// pipelineInfo is of one generation, unless bundles arrive faster than requests.
func (s *Server) pipelineInfo() (p PipelineInfo) {
	for range 3 {
		p = PipelineInfo{s.sw.Generation(), s.sw.Learnings(), s.sw.First(), s.sw.Names()}
		if s.sw.Generation() == p.Generation {
			break
		}
	}
	return p
}

func (s *Server) addPipeline(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/flows", s.answerFlows)
	mux.HandleFunc("GET /v1/groups", func(w http.ResponseWriter, r *http.Request) {
		dump(w, r, s.sw.Groups(), func(b *bytes.Buffer, g *telemetry.GroupStats) { b.WriteString(g.Text(nil)) })
	})
	mux.HandleFunc("GET /v1/meters", func(w http.ResponseWriter, r *http.Request) {
		dump(w, r, s.sw.Meters(), func(b *bytes.Buffer, m *telemetry.MeterStats) { b.WriteString(m.Text()) })
	})
	answer(mux, "GET /v1/tables", func(*http.Request) (any, error) { return s.sw.Tables(), nil })
	s.change(mux, "POST /v1/bundle", func(r *http.Request) (any, error) {
		b, err := ReadBundle(r.Body, s.sw.Names())
		if err == nil {
			err = s.sw.Apply(b)
		}
		return s.pipelineInfo(), err
	})
	s.change(mux, "POST /v1/relearn", withBody(func(_ *http.Request, all *[]telemetry.Learned) (any, error) { return nil, s.sw.Relearn(*all) }))
	answer(mux, "POST /v1/classes", withBody(func(_ *http.Request, q *ClassesRequest) (any, error) {
		id, err := s.classes.register(s.sw, q)
		return ClassesAnswer{id}, err
	}))
	answer(mux, "GET /v1/classes/{id}", func(r *http.Request) (any, error) { return s.classes.sum(s.sw, r.PathValue("id")) })
}

// answerFlows dumps all entries, or those of a table.
func (s *Server) answerFlows(w http.ResponseWriter, r *http.Request) {
	var all []telemetry.FlowStats
	if text := r.URL.Query().Get("table"); text == "" {
		all = s.sw.Flows()
	} else if no, err := strconv.ParseUint(text, 10, 8); err == nil {
		all = s.sw.FlowsIn(uint8(no))
	} else {
		http.Error(w, fmt.Sprintf("table=%.20q is not the number of a table, 0 to 254", text), http.StatusBadRequest)
		return
	}
	var b []byte
	for i := range all {
		if r.URL.Query().Get("format") == "json" {
			b = all[i].AppendJSON(b) // one line at a time, because an answer may have a hundred thousand
		} else {
			e := &all[i]
			b = e.AppendText(b, flow.Format{Stats: &flow.Stats{Packets: e.Packets, Bytes: e.Bytes, Duration: e.Duration, Idle: e.Idle}})
		}
		b = append(b, '\n')
	}
	w.Write(b)
}

func (s *Server) addPackets(mux *http.ServeMux) {
	answer(mux, "GET /v1/counters", func(r *http.Request) (any, error) {
		if r.URL.Query().Get("running") == "1" {
			return s.sw.RunningPacketCounters(), nil
		}
		return s.sw.PacketCounters(), nil
	})
	answer(mux, "GET /v1/answers", func(*http.Request) (any, error) { return s.sw.Answers(), nil })
	answer(mux, "GET /v1/drops", func(r *http.Request) (any, error) {
		since, err := strconv.ParseUint(cmp.Or(r.URL.Query().Get("since"), "0"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("since: %w", err)
		}
		return s.sw.DropsSince(since), nil
	})
	answer(mux, "POST /v1/trace", withBody(func(_ *http.Request, q *telemetry.TraceRequest) (any, error) { return s.sw.Trace(q) }))
	mux.HandleFunc("POST /v1/trace/live", s.answerLive)
	s.change(mux, "POST /v1/packet-out", withBody(func(_ *http.Request, q *PacketOut) (any, error) {
		actions, err := parse.Actions(q.Actions, s.sw.Names())
		if err == nil {
			err = s.sw.PacketOut(q.InPort, actions, q.Frame)
		}
		return nil, err
	}))
	s.change(mux, "POST /v1/resume", withBody(func(_ *http.Request, q *telemetry.Paused) (any, error) { return nil, s.sw.Resume(q) }))
}

func (s *Server) addPorts(mux *http.ServeMux) {
	answer(mux, "GET /v1/ports", func(*http.Request) (any, error) { return s.sw.Ports(), nil })
	answer(mux, "GET /v1/fdb", func(*http.Request) (any, error) { return s.sw.LearnedMACs(), nil })
	answer(mux, "GET /v1/fdb/stats", func(*http.Request) (any, error) { return s.sw.MACTableStats(), nil })
	s.change(mux, "DELETE /v1/fdb", func(*http.Request) (any, error) { return nil, s.sw.FlushMACs() })
	answer(mux, "GET /v1/ports/{no}/sample", func(r *http.Request) (any, error) {
		no, err := portNo(r)
		return s.sw.DropSample(no, r.URL.Query().Get("reason")), err
	})
	handleValue(s, mux, "PUT /v1/ports/{no}", func(r *http.Request, p *PortSpec) (err error) {
		if p.No, err = portNo(r); err == nil {
			err = s.open.OpenPort(p)
		}
		return err
	})
	s.change(mux, "DELETE /v1/ports/{no}", func(r *http.Request) (any, error) {
		no, err := portNo(r)
		if err == nil {
			err = s.sw.RemovePort(no)
		}
		return nil, err
	})
	mux.HandleFunc("POST /v1/ports/{no}/give", s.answerGive)
	mux.HandleFunc("POST /v1/ports/{no}/lend", s.answerLend)
	mux.HandleFunc("POST /v1/ports/pause", s.answerPause)
	mux.HandleFunc("POST /v1/tunnel/egresses/give", s.answerGiveEgresses)
	mux.HandleFunc("POST /v1/offload/programs", s.answerPrograms)
	mux.HandleFunc("POST /v1/held/{name}/give", s.answerGiveHeld)
	mux.HandleFunc("POST /v1/held/{name}/lend", s.answerLendHeld)
	s.change(mux, "PUT /v1/ports/{no}/security", withBody(func(r *http.Request, p *l2.PortSecurity) (any, error) {
		no, err := portNo(r)
		if err == nil {
			err = s.sw.SecurePort(no, *p)
		}
		return nil, err
	}))
	s.change(mux, "PUT /v1/ports/{no}/config", withBody(func(r *http.Request, c *telemetry.PortConfig) (any, error) {
		no, err := portNo(r)
		if err == nil {
			err = s.sw.ConfigurePort(no, *c)
		}
		return nil, err
	}))
	answer(mux, "GET /v1/tunnel/path-mtu", func(r *http.Request) (any, error) {
		node, err := netip.ParseAddr(r.URL.Query().Get("node"))
		if err == nil && s.open == nil {
			err = errNoPorts
		}
		if err != nil {
			return nil, err
		}
		mtu, err := s.open.TunnelPathMTU(node)
		return PathMTU{mtu}, err
	})
	handleValue(s, mux, "PUT /v1/tunnel/peers", func(_ *http.Request, v *[]TunnelPeer) error { return s.open.SetTunnelPeers(*v) })
	handleValue(s, mux, "PUT /v1/tunnel/silent", func(_ *http.Request, v *[]netip.Addr) error { return s.open.SetTunnelSilent(*v) })
	handleValue(s, mux, "PUT /v1/tunnel/egresses", func(_ *http.Request, v *TunnelEgresses) error { return s.open.SetTunnelEgresses(v) })
}

// handleValue registers a change whose body goes to the PortOpener.
func handleValue[T any](s *Server, mux *http.ServeMux, path string, to func(*http.Request, *T) error) {
	s.change(mux, path, func(r *http.Request) (any, error) {
		if s.open == nil {
			return nil, errNoPorts
		}
		return withBody(func(r *http.Request, v *T) (any, error) { return nil, to(r, v) })(r)
	})
}

// errNoPorts is the error of a switch without a PortOpener.
var errNoPorts = errors.New("this switch opens no ports")

func portNo(r *http.Request) (uint32, error) {
	no, err := strconv.ParseUint(r.PathValue("no"), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.20q is not the number of a port", r.PathValue("no"))
	}
	return uint32(no), nil
}

func (s *Server) addConnections(mux *http.ServeMux) {
	c := s.sw.Connections()
	mux.HandleFunc("GET /v1/conntrack", func(w http.ResponseWriter, r *http.Request) {
		var f conntrack.Filter
		if text := r.URL.Query().Get("filter"); text != "" {
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				http.Error(w, "filter: "+err.Error(), http.StatusBadRequest)
				return
			}
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		e := json.NewEncoder(w)
		for one := range c.Dump(f) {
			if e.Encode(&one) != nil {
				return // the caller has hung up
			}
		}
	})
	answer(mux, "GET /v1/conntrack/stats", func(*http.Request) (any, error) {
		return &ConnectionStats{c.Stats(), c.Zones(), c.Ports(), c.Revalidated(), c.Limits()}, nil
	})
	s.change(mux, "POST /v1/conntrack/flush", withBody(func(_ *http.Request, f *conntrack.Filter) (any, error) { return Flushed{c.Flush(*f)}, nil }))
	s.change(mux, "POST /v1/conntrack/purge", withBody(func(_ *http.Request, p *Purge) (any, error) { c.Purge(p); return nil, nil }))
	s.change(mux, "POST /v1/conntrack/shield", withBody(func(_ *http.Request, q *ShieldRequest) (any, error) {
		c.Shield(q.Endpoints, q.Until)
		return nil, nil
	}))
	s.change(mux, "POST /v1/conntrack/revalidate", withBody(func(r *http.Request, n *NodePorts) (any, error) { return nil, c.Revalidate(r.Context(), n) }))
}

// maxRequest is the largest body of a request, bundles excepted, in bytes.
const maxRequest = 64 << 20
