package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
)

// The store holds the objects of all sources and makes snapshots. A source is a file or the
// Kubernetes API. If several sources have an object, the source whose name sorts first wins,
// and Problems names the others.
//
// The store checks what needs several objects (store_refuse.go), and derives what follows from
// several objects (store_derive.go). The result depends only on what the sources hold now, not
// on the order of changes, except for last good states (store_refuse.go).
//
// A change copies the maps of the kinds that it touches. Its cost is their size, not that of
// the cluster. Any goroutine may call Apply. Reading a snapshot takes no lock.

// Change is a change of one source. All Changes of one Apply make one snapshot.
type Change struct {
	Source string           // name of the source, equal to Source.File of the objects
	Set    []cluster.Object // new objects, and changed ones whole
	Delete []cluster.Key    // objects that the source no longer has
	// Since is when the source learned of the change; zero: unknown.
	Since time.Time
}

// Update is the step from one snapshot to the next.
type Update struct {
	Old, New *cluster.Cluster
	// Changed are the keys that differ, in order. They include derived EndpointSlices, and
	// objects whose refusal began or ended. An object that only moved in its file is not
	// among them.
	Changed []cluster.Key
	// Since is when a source learned of the first of the changes; zero: unknown.
	Since time.Time
}

// Store holds a cluster's objects. NewStore makes one.
type Store struct {
	mu        sync.Mutex
	claims    map[cluster.Key][]cluster.Object // what each source has, in order of the sources
	twice     map[cluster.Key]bool             // keys with several claims
	twins     map[cluster.Key][]cluster.Key    // of Pods with several ports
	validated map[cluster.Key]bool             // claimed keys of validatedKinds
	refused   map[cluster.Key]manifest.Problem // objects that the store refuses
	held      map[cluster.Key]manifest.Problem // deleted tiers that stay
	edited    RefusedEdits                     // those of the source
	invalid   RefusedEdits                     // those of the store
	derive    *derivation                      // nil: derive nothing
	followers map[int]func(Update)
	nextID    int

	current atomic.Pointer[cluster.Cluster]
	edits   atomic.Pointer[RefusedEdits]
}

// NewStore makes an empty store. With DeriveEndpoints, Services without EndpointSlices get
// them from Pods, as manifests need it. A source with all EndpointSlices, such as the
// Kubernetes API, does not need it.
func NewStore(endpoints EndpointSource) *Store {
	s := &Store{
		claims:    map[cluster.Key][]cluster.Object{},
		twice:     map[cluster.Key]bool{},
		twins:     map[cluster.Key][]cluster.Key{},
		validated: map[cluster.Key]bool{},
		refused:   map[cluster.Key]manifest.Problem{},
		followers: map[int]func(Update){},
	}
	if endpoints == DeriveEndpoints {
		s.derive = newDerivation()
	}
	s.current.Store(cluster.EmptyCluster())
	return s
}

// EndpointSource is the origin of Services' EndpointSlices.
type EndpointSource int

// Sources of EndpointSlices.
const (
	DeriveEndpoints EndpointSource = iota // from Pods, for Services without any
	GivenEndpoints                        // only from the sources
)

// Snapshot returns the snapshot in force.
func (s *Store) Snapshot() *cluster.Cluster { return s.current.Load() }

// Follow calls f after each Apply that changed something, in order and one at a time, from the
// goroutine that applies. f must call no method of the store except Snapshot. Follow returns
// the Old of the first call, and a function that ends the calls.
func (s *Store) Follow(f func(Update)) (now *cluster.Cluster, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.followers[id] = f
	return s.Snapshot(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followers, id)
	}
}

// Apply applies the changes, publishes the next snapshot and calls the followers.
func (s *Store) Apply(changes ...Change) Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[cluster.Key]bool{}
	for _, c := range changes {
		s.claim(c, touched)
	}
	s.validate(touched)
	u := s.step(touched)
	u.Since = earliest(changes)
	if len(u.Changed) > 0 {
		for id := range s.nextID {
			if f := s.followers[id]; f != nil {
				f(u)
			}
		}
	}
	return u
}

// earliest is the first known time at which a source learned of one of the changes.
func earliest(changes []Change) (t time.Time) {
	for _, c := range changes {
		if t.IsZero() || !c.Since.IsZero() && c.Since.Before(t) {
			t = c.Since
		}
	}
	return t
}

// claim records the objects that a source sets or deletes.
func (s *Store) claim(c Change, touched map[cluster.Key]bool) {
	for _, k := range c.Delete {
		s.set(k, c.Source, nil)
		s.touch(touched, k)
	}
	for _, obj := range c.Set {
		k := obj.Metadata().Key
		s.set(k, c.Source, obj)
		s.touch(touched, k)
	}
}

// touch marks a key. For a port it marks the Pod; for a Pod also its twins.
func (s *Store) touch(touched map[cluster.Key]bool, k cluster.Key) {
	if k.Kind == KindPodPort {
		k = podOf(k)
	}
	touched[k] = true
	for _, twin := range s.twins[k] {
		touched[twin] = true
	}
}

// set replaces a source's object of a key.
func (s *Store) set(k cluster.Key, source string, obj cluster.Object) {
	claims := slices.DeleteFunc(slices.Clone(s.claims[k]), func(o cluster.Object) bool {
		return o.Metadata().Source.File == source
	})
	if obj != nil {
		at, _ := slices.BinarySearchFunc(claims, source, func(o cluster.Object, source string) int {
			return strings.Compare(o.Metadata().Source.File, source)
		})
		claims = slices.Insert(claims, at, obj)
	}
	s.claims[k] = claims
	if len(claims) == 0 {
		delete(s.claims, k)
	}
	mark(s.twice, k, len(claims) > 1)
	s.noteTwin(k, len(claims) > 0)
	mark(s.validated, k, len(claims) > 0 && slices.Contains(validatedKinds, k.Kind))
}

// mark puts a key into a set or removes it.
func mark(set map[cluster.Key]bool, k cluster.Key, in bool) {
	if in {
		set[k] = true
	} else {
		delete(set, k)
	}
}

// wanted is the object that the next snapshot shall have for a key: its first claim. If that is
// refused, or is a held tier, it is the object of the last snapshot. An unclaimed default tier
// is the built-in one.
func (s *Store) wanted(k cluster.Key) cluster.Object {
	_, refused := s.refused[k]
	if _, held := s.held[k]; refused || held {
		if now := s.Snapshot().Object(k); now != nil {
			return now
		}
	} else if len(s.claims[k]) > 0 {
		if pod, ok := s.claims[k][0].(*cluster.Pod); ok {
			return s.attach(pod)
		}
		return s.claims[k][0]
	}
	if pod, ok := origin(k); ok {
		return s.twin(k, pod)
	}
	if tier, ok := builtinTiers[k]; ok {
		return tier
	}
	return nil
}

// step makes and publishes the snapshot in which the touched keys have their wanted objects.
func (s *Store) step(touched map[cluster.Key]bool) Update {
	b := newBuilding(s.Snapshot())
	for k := range touched {
		b.put(k, s.wanted(k))
	}
	if s.derive != nil {
		s.derive.update(b)
	}
	b.index()
	s.current.Store(b.next)
	slices.SortFunc(b.changed, cluster.Key.Compare)
	return Update{Old: b.old, New: b.next, Changed: b.changed}
}

// building is a snapshot in the making. It shares maps with the old snapshot until it writes
// them.
type building struct {
	old, next *cluster.Cluster
	owned     map[cluster.Kind]bool
	changed   []cluster.Key
}

func newBuilding(old *cluster.Cluster) *building {
	next := *old
	return &building{old: old, next: &next, owned: map[cluster.Kind]bool{}}
}

// put sets the object of a key, or removes it if obj is nil.
func (b *building) put(k cluster.Key, obj cluster.Object) {
	set := b.next.Set(k.Kind)
	if set == nil { // no snapshot has this kind
		return
	}
	now := set.Get(k)
	if now == nil && obj == nil || now == obj {
		return
	}
	if !b.owned[mapOf(k.Kind)] {
		set.Own()
		b.owned[mapOf(k.Kind)] = true
	}
	if obj == nil {
		set.Remove(k)
	} else {
		set.Put(obj)
	}
	if now == nil || obj == nil || !SameObject(now, obj) {
		b.changed = append(b.changed, k)
	}
}

// mapOf names the map of a kind, since two kinds may share one.
func mapOf(k cluster.Kind) cluster.Kind {
	switch k {
	case cluster.KindAntreaNetworkPolicy:
		return cluster.KindClusterNetworkPolicy
	case cluster.KindGroup:
		return cluster.KindClusterGroup
	}
	return k
}

// index updates the index of EndpointSlices by Service.
func (b *building) index() {
	services := map[cluster.Name]bool{}
	for _, k := range b.changed {
		for _, c := range []*cluster.Cluster{b.old, b.next} {
			if slice := c.EndpointSlices[k]; slice != nil && slice.Service.Name != "" {
				services[slice.Service] = true
			}
		}
	}
	b.next.ServiceSlices = indexSlices(b, services)
}

// SameObject reports whether two objects are equal except for their Source.
func SameObject(a, b cluster.Object) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	ma, mb := *a.Metadata(), *b.Metadata()
	ma.Source, mb.Source = cluster.Source{}, cluster.Source{}
	if !reflect.DeepEqual(ma, mb) {
		return false
	}
	for i := range va.NumField() {
		if va.Type().Field(i).Name == "Meta" {
			continue
		}
		if !reflect.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			return false
		}
	}
	return true
}

// Problems returns the objects that the store holds but does not publish, in order of their
// keys. Another source has them already, or the store refuses them (store_refuse.go). It adds
// the deleted tiers that stay. The reader of a file reports why it cannot read the file.
func (s *Store) Problems() []manifest.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []manifest.Problem
	for k := range s.twice {
		claims := s.claims[k]
		for _, obj := range claims[1:] {
			out = append(out, manifest.Problem{Source: obj.Metadata().Source, Key: k,
				Reason: fmt.Sprintf("is there already, at %s", claims[0].Metadata().Source)})
		}
	}
	out = slices.AppendSeq(out, maps.Values(s.refused))
	out = slices.AppendSeq(out, maps.Values(s.held))
	slices.SortFunc(out, func(a, b manifest.Problem) int {
		if c := a.Key.Compare(b.Key); c != 0 {
			return c
		}
		return strings.Compare(a.Source.File, b.Source.File)
	})
	return out
}
