package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// waiting lists the functions on a packet's way that may wait for others or read the clock.
// The reason says why packets of known connections do not reach them. A packet with
// something new writes it, and waits for other writers.
//
// It is a list for reviewers, not a proof. TestKnownPacketsMeetNoLock in dataplane and
// conntrack tests that known packets pass while the locks are held.
var waiting = []struct {
	reason string
	who    []string
}{
	{"changes of the switch, questions to it, and upkeep: not on a worker's way", []string{
		"dataplane.New", "dataplane.Switch.AddSecuredPort", "dataplane.Switch.pause", "dataplane.Switch.SecurePort", "dataplane.Switch.ConfigurePort", "dataplane.Switch.RemovePort", "dataplane.Switch.MovePort", "dataplane.Switch.Apply", "dataplane.Switch.apply", "dataplane/program.Compiler.runCompile", "dataplane.Switch.Relearn",
		"dataplane.Switch.upkeep", "dataplane.Switch.Expire", "dataplane.Switch.expireEntries", "dataplane.Switch.balance", "dataplane.Switch.endWindow", "dataplane.worker.letGo", "dataplane.worker.finish", "dataplane.worker.call",
		"dataplane.Switch.Flows", "dataplane.Switch.LearnedFlows", "dataplane.Switch.FlowsIn", "dataplane.Switch.LearnedMACs", "dataplane.Switch.DroppedPackets", "dataplane.Switch.RunningPacketCounters", "dataplane.Switch.PacketCounters",
		"dataplane/offload.Table.Stats", "dataplane.Switch.creditNow", "dataplane/sched.IdleHold.Total", "dataplane.cache.creditAll", "dataplane/flowcache.Megaflows.CreditAll", "dataplane.ClassCounters.Sum", "packet.HeapPool.Free",
		"dataplane.Switch.inject", "dataplane.Switch.Trace", "dataplane.Switch.TraceLive", "dataplane.LiveTrace.Close",
		"conntrack.Config.withDefaults", "conntrack.newTable", "conntrack.Restore", "conntrack.Table.TakeOver",
		"conntrack.Table.Dump", "conntrack.Table.RemoveConnection", "conntrack.Table.Purge", "conntrack.Table.Sweep", "conntrack/reassembly.Fragments.Expire", "conntrack/reassembly.Fragments.Stats",
	}},
	{"offload: a goroutine of its own", []string{
		"dataplane/offload.Table.put", "dataplane/offload.Table.fill", "dataplane/offload.Table.connOf", "dataplane/offload.Table.clearSome", "dataplane/offload.Table.TakeBack", "dataplane/offload.Table.release",
		"dataplane/offload.Table.Tend", "dataplane/offload.Table.CreditNow", "dataplane/offload.Table.creditAll",
	}},
	{"a worker's rounds, batches, waits and sleep", []string{
		"dataplane.worker.round", "dataplane.worker.charge", "dataplane.worker.drain", "dataplane.worker.settle", "dataplane.Switch.relieve",
		"dataplane.worker.runWorker", "dataplane.worker.rest", "dataplane.worker.sleep", "dataplane/sched.WakeTimes.Sleeps", "dataplane/sched.Clock",
		"packet.HeapPool.Get", "packet.HeapPool.Put",
	}},
	{"the 64th burst of a conversation, or of others, and silence after it: bursts come one by one; a garbage collection", []string{"dataplane/sched.IdleHold.keep"}},
	{"a timed walk: one in 1021", []string{"dataplane.sinceBegin", "dataplane.worker.findTimed", "dataplane.timer.end"}},
	{"a packet that begins or ends a connection", []string{
		"conntrack/store.Index.LockPair", "conntrack.portShare.move", "conntrack.Table.pick",
	}},
	{"a lookup that other workers' changes misled several times", []string{"conntrack/store.Index.Find"}},
	{"a packet that makes the switch learn", []string{
		"dataplane/l2.MACTable.addAddress", "dataplane/l2.MACTable.Remove", "dataplane/lookup.LearnedEntries.Add", "dataplane/lookup.LearnedEntries.RemoveIf", "dataplane/offload.Table.Withdraw",
	}},
	{"a path or megaflow that no packet took before, and a cache that is cleared", []string{
		"dataplane.cache.intern", "dataplane.cache.forget", "dataplane/flowcache.Megaflows.intern", "dataplane/flowcache.Megaflows.clearList",
	}},
	{"a packet that offers its connection to the kernel: one in 32 or fewer", []string{"dataplane/offload.Table.Offer"}},
	{"a packet that the agent gets", []string{"dataplane.walk.queuePacketIn"}},
	{"a fragment, which waits for the others of its datagram", []string{
		"conntrack/reassembly.Fragments.Add", "conntrack/reassembly.Fragments.Release", "conntrack/reassembly.pieceMemory.get", "conntrack/reassembly.pieceMemory.put", "conntrack/reassembly.pieceMemory.Put", "dataplane.Switch.dropFragment",
	}},
	{"a packet that is watched", []string{"dataplane.newLiveTracer", "dataplane.tracer.addStep", "dataplane.LiveTrace.due", "dataplane.LiveTrace.end"}},
}

// onTheWay are the packages on a packet's way. Ports are not among them: they lock once per
// batch. The only lock that the test does not see is a bit in a connection's cell
// (store.Cell.LockIf).
var onTheWay = []string{"packet", "flow", "tunnel", "conntrack/tuple", "conntrack/reassembly", "conntrack/proto", "conntrack/store", "conntrack", "dataplane"}

// TestRulesOfWaiting: each function on a packet's way that takes a lock, sends to a channel
// or reads the clock is listed with its reason.
func TestRulesOfWaiting(t *testing.T) {
	listed := map[string]bool{}
	for _, w := range waiting {
		for _, who := range w.who {
			if listed[who] {
				t.Errorf("%s is listed twice", who)
			}
			listed[who] = true
		}
	}
	found := map[string]bool{}
	for _, f := range read(t, false) {
		if !under(f.dir, onTheWay) {
			continue
		}
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !waits(fn) {
				continue
			}
			who := f.dir + "." + nameOf(fn)
			found[who] = true
			if !listed[who] {
				t.Errorf("%s: %s takes a lock, sends to a channel or reads the clock; no packet of which all is known may come by it: say in the list why none does", f.path, who)
			}
		}
	}
	for who := range listed {
		if !found[who] {
			t.Errorf("%s is listed, and does not wait, or is not there", who)
		}
	}
}

// waits says whether a function takes a lock of sync's, sends to a channel, or reads
// the clock.
func waits(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt:
			found = true
		case *ast.CallExpr:
			found = found || slices.Contains([]string{"Lock", "RLock", "TryLock", "Now", "Since", "clock", "Clock", "sinceBegin"}, called(n.Fun))
		}
		return !found
	})
	return found
}

// TestRulesOfWaitingBite feeds the rule functions that wait, and one that does not.
func TestRulesOfWaitingBite(t *testing.T) {
	for _, c := range []struct {
		body string
		want bool
	}{
		{"x.mu.Lock()", true}, {"defer x.mu.RLock()", true}, {"if x.mu.TryLock() {}", true}, {"func() { c <- 1 }()", true}, {"select { case c <- 1: default: }", true},
		{"t := time.Now()", true}, {"x.sw.clock()", true}, {"x.mu.Unlock(); <-c; x.n.Add(1)", false},
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc (x *held[T]) g() { "+c.body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		fn := tree.Decls[0].(*ast.FuncDecl)
		if waits(fn) != c.want || nameOf(fn) != "held.g" {
			t.Errorf("%s: waits: %v, want %v (%s)", c.body, waits(fn), c.want, nameOf(fn))
		}
	}
}

// called is the last word of what is called.
func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// nameOf is a function's name, behind that of its receiver's type if it has one.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return strings.Join([]string{called(of), fn.Name.Name}, ".")
}
