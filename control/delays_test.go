package control

import (
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/flow"
)

// TestDelaysObserved: the delay of a part counts from the change that asked for it. This holds for
// parts that are installed at once, that wait for a retry, and that go.
func TestDelaysObserved(t *testing.T) {
	var sw *refusing
	x := newTelling(t, readManifest(t, "testdata/stories/node.yaml"), func(to ledger.Installer) ledger.Installer {
		sw = &refusing{Installer: to}
		return sw
	})
	type delay struct {
		kind cluster.Kind
		took time.Duration
	}
	var got []delay
	x.r.ObserveDelays(func(k cluster.Kind, d time.Duration) { got = append(got, delay{k, d}) })
	expect := func(what string, want ...delay) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		got = nil
	}
	step := func(c store.Change) error {
		c.Source, c.Since = storyFile, x.clock
		x.clock = x.clock.Add(3 * time.Millisecond)
		u := x.store.Apply(c)
		return x.r.UpdateSince(u.New, u.Changed, u.Since)
	}
	service := manifest.Decode(storyFile, []byte(`{apiVersion: v1, kind: Service, metadata: {name: more, namespace: default}, spec: {clusterIP: 10.105.31.77, ports: [{port: 80}]}}`)).Objects
	if err := step(store.Change{Set: service}); err != nil {
		t.Fatal(err)
	}
	expect("installed at once", delay{cluster.KindService, 3 * time.Millisecond})

	sw.err = errInjected
	if err := step(store.Change{Delete: []cluster.Key{service[0].Metadata().Key}}); err == nil {
		t.Fatal("the switch refused, and Update returned no error")
	}
	expect("refused")
	sw.err = nil
	x.clock = x.clock.Add(time.Second)
	if err := x.r.Retry(); err != nil {
		t.Fatal(err)
	}
	expect("gone with a retry", delay{cluster.KindService, time.Second + 3*time.Millisecond})

	x.change(service, nil)
	expect("a change of which nobody knows since when")
}

// refusing is a switch that refuses every bundle while err is set.
type refusing struct {
	ledger.Installer
	err error
}

// Apply implements Installer.
func (r *refusing) Apply(b *flow.Bundle) error {
	if r.err != nil {
		return r.err
	}
	return r.Installer.Apply(b)
}
