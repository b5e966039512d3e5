package traceflow

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// Cluster is what the Runner needs of the objects. *control.Reconciler implements it.
type Cluster interface {
	Traceflows() []*cluster.Traceflow
	TracedEnds(*cluster.Traceflow) (control.TracedEnds, error)
	SetTraceflows([]control.TracedTag) error
	FirstNode() string
	NodeAt(netip.Addr) string
	PlaceOf(netip.Addr) control.Place
	Self() (control.Self, error)
	Object(cluster.Key) cluster.Object
	OriginsOf(*flow.Entry) []ledger.Origin
	RuleByID(uint32) *policy.RealisedRule
}

// Switch sends packets and watches them.
type Switch interface {
	Names() *flow.Names
	TraceLive(*door.LiveRequest) (door.Live, error)
	PacketOut(inPort uint32, actions []flow.Action, frame []byte) error
}

// Writer writes the status of a Traceflow for all Nodes. If another object of the same name
// replaced the Traceflow, Writer writes nothing and returns nil.
type Writer interface {
	WriteTraceflow(ctx context.Context, t *cluster.Traceflow, s *cluster.TraceflowStatus) error
}

// Config is what a Runner needs.
type Config struct {
	Node    string
	Objects Cluster
	Switch  Switch
	// API is where statuses are written; nil: each Node keeps its own.
	API Writer
	// Changed is closed when objects may have changed.
	Changed func() <-chan struct{}
	// Refused are the refused Traceflows, with the reasons; nil: none are reported.
	Refused func() map[cluster.Key]string
	Clock   func() time.Time
	Log     *slog.Logger
}

// Runner runs the Traceflows of a cluster on one Node.
type Runner struct {
	Config
	sw       Switch
	seen     chan sighting
	refusals map[cluster.Key]string // that were written

	mu    sync.Mutex // held during a turn, and by Status
	runs  map[cluster.Key]*run
	watch *watch
	fault string // the last logged fault
}

// New makes a Runner.
func New(c Config) *Runner {
	return &Runner{Config: c, sw: c.Switch, seen: make(chan sighting), refusals: map[cluster.Key]string{}, runs: map[cluster.Key]*run{}, watch: &watch{end: func() {}}}
}

// Status is the status of a Traceflow, as this Node knows it.
func (r *Runner) Status(t *cluster.Traceflow) cluster.TraceflowStatus {
	if r.API != nil {
		return t.Status
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.runs[t.Key]; n != nil {
		return n.local
	}
	return cluster.TraceflowStatus{}
}

// run is a Traceflow as this Node runs it.
type run struct {
	of      *cluster.Traceflow
	since   time.Time // it was seen first
	local   cluster.TraceflowStatus
	written string    // the version that a status was written for
	at      time.Time // when
	claimed uint8     // the tag of that status
	tag     uint8
	begun   time.Time // to be watched
	ends    control.TracedEnds
	active  bool // it is under way here
	sent    bool
	parts   []cluster.Observation    // what this Node saw until the packet went to an engine
	result  *cluster.TraceflowResult // what it saw
	note    string                   // more about it
	seenAt  time.Time                // when its packet came last
}

// status is the current status of a Traceflow.
func (r *Runner) status(n *run) cluster.TraceflowStatus {
	if r.API == nil {
		return n.local
	}
	return n.of.Status
}

// set writes a status.
func (r *Runner) set(ctx context.Context, n *run, s cluster.TraceflowStatus) {
	if r.API == nil {
		n.local = s
		return
	}
	n.written, n.at = n.of.Version, r.Clock()
	if err := r.API.WriteTraceflow(ctx, n.of, &s); err != nil && ctx.Err() == nil {
		r.Log.Warn("the status of a Traceflow is not written; trying again", "object", n.of.Key.String(), "error", err)
	}
}

// fail ends a Traceflow with a reason.
func (r *Runner) fail(ctx context.Context, n *run, reason string) {
	s := r.status(n)
	s.Phase, s.Reason, s.Tag = cluster.TraceflowFailed, reason, 0
	r.set(ctx, n, s)
}

// watch is a live trace.
type watch struct {
	filters []string
	end     func() // may be called twice
}

// sighting is a walk of a packet, or why there are no more.
type sighting struct {
	by   *watch
	walk *telemetry.Trace // nil with an error
	err  error
}
