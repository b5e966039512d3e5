package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/switchd"
)

// TestSeedIsKept: CT-31. An agent that starts again in the same run directory
// sends every client to the endpoint it had; one with another seed does not.
func TestSeedIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run", "select.seed")
	endpoints := func() string {
		seed, err := switchd.LoadSeed(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.Files{Flows: "../examples/two-nodes/node-a.flows"}.Beside().Load(pipeline.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Local.Close()
		return chosen(t, p)
	}
	first, again := endpoints(), endpoints()
	if first != again {
		t.Errorf("after a restart other endpoints are chosen:\n%s\n%s", first, again)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the seed's file: %v, %v", st, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if first == endpoints() {
		t.Error("another seed chooses the same endpoints for all of 100 clients")
	}
}

// chosen traces a hundred connections to a Service with two endpoints, and
// tells where each goes.
func chosen(t *testing.T, p *pipeline.Pipeline) string {
	t.Helper()
	var all strings.Builder
	for port := range 100 {
		tr, err := p.Trace(&api.TraceRequest{Flow: fmt.Sprintf("in_port=36,tcp,dl_src=5e:b5:e3:a6:90:b7,"+
			"dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_src=%d,tp_dst=80", 2000+port)})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := tr.WriteText(&text, nil); err != nil {
			t.Fatal(err)
		}
		_, to, ok := strings.Cut(text.String(), "nat(dst=")
		if !ok {
			t.Fatalf("no endpoint is chosen:\n%.2000s", text.String())
		}
		to, _, _ = strings.Cut(to, ")")
		all.WriteString(to + " ")
	}
	return all.String()
}

// TestShieldFollowsServices: the endpoints of the snapshot are shielded, those
// of an older one no more, and a table that kept its connections needs none.
func TestShieldFollowsServices(t *testing.T) {
	var now int64
	p, err := pipeline.NewPipeline(pipeline.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	objects, _, err := store.LoadManifests("../examples/web-app")
	if err != nil {
		t.Fatal(err)
	}
	all := tcpEndpoints(objects)
	if len(all) == 0 {
		t.Fatal("no endpoints in the example")
	}
	o := packettest.Options{Src: all[0].Addr(), SrcPort: all[0].Port(), TCPFlags: packet.TCPAck, Ack: 1}
	build := packettest.TCP4
	if o.Src.Is6() {
		build = packettest.TCP6
	}
	commit := func() conntrack.DropReason {
		f := packet.NewFrame(make([]byte, 2048), nil)
		f.SetBytes(build(o))
		l := packet.ParseLayers(f.Bytes())
		var m conntrack.Meta
		return p.Local.Table().Track(f, &l, &m, &conntrack.Request{Commit: true}, now).Drop
	}
	s := newShield(p)
	s.update(objects)
	if got := commit(); got != conntrack.DropServerFirst {
		t.Errorf("verdict %s", got)
	}
	s.update(cluster.EmptyCluster())
	if got := commit(); got != conntrack.DropNone {
		t.Errorf("without Services: verdict %s", got)
	}
	if kept := newShield(p); kept != (shield{}) {
		t.Errorf("with a connection: %+v", kept)
	}
}
