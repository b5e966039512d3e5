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

// The store holds what the sources say and hands out snapshots. A source is a
// file or the Kubernetes API; the same object may stand in several, and then
// the source whose name sorts first has it and the others are told. What needs
// more than one object to be judged is judged here (store_refuse.go), and what
// follows from several objects is made here (store_derive.go).
//
// All of that depends on what the sources hold now and not on the order in
// which it came.
//
// A change costs the size of the maps of the kinds that it touches, which are
// copied, and not the size of the cluster. Apply may be called from any
// goroutine; snapshots are read without a lock.

// Change is what one source says anew. Several changes given to one Apply make
// one snapshot.
type Change struct {
	Source string           // name of a file, equal to Source.File of the objects
	Set    []cluster.Object // new objects, and changed ones whole
	Delete []cluster.Key    // objects that the source no longer has
	// Since is when the source learned of it; zero: not known.
	Since time.Time
}

// Update is the step from one snapshot to the next.
type Update struct {
	Old, New *cluster.Cluster
	// Changed are the keys that differ, in order; derived EndpointSlices and
	// objects that are refused now, or no longer, are among them. An object
	// that only moved in its file has not changed.
	Changed []cluster.Key
	// Since is when a source learned of the first of the changes; zero: not known.
	Since time.Time
}

// Store holds a cluster's objects. NewStore makes one.
type Store struct {
	mu        sync.Mutex
	claims    map[cluster.Key][]cluster.Object // what each source says, in order of the sources
	twice     map[cluster.Key]bool             // keys with several claims
	twins     map[cluster.Key][]cluster.Key    // of Pods with several ports
	validated map[cluster.Key]bool             // claimed keys of the kinds that are judged
	refused   map[cluster.Key]manifest.Problem // by what only the store can judge
	held      map[cluster.Key]manifest.Problem // tiers that are deleted and stay
	edited    RefusedEdits                     // those of the source
	invalid   RefusedEdits                     // those that the store judged
	derive    *derivation                      // nil: nothing is derived
	followers map[int]func(Update)
	nextID    int

	current atomic.Pointer[cluster.Cluster]
	edits   atomic.Pointer[RefusedEdits]
}

// NewStore makes a store without objects. With DeriveEndpoints, Services
// without EndpointSlices get theirs from Pods, as manifests need it; a source
// that has all EndpointSlices, such as the Kubernetes API, does not.
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

// EndpointSource says where the EndpointSlices of Services come from.
type EndpointSource int

// Sources of EndpointSlices.
const (
	DeriveEndpoints EndpointSource = iota // from Pods, where a Service has none
	GivenEndpoints                        // all of them are given
)

// Snapshot returns the snapshot in force.
func (s *Store) Snapshot() *cluster.Cluster { return s.current.Load() }

// Follow calls f after each Apply that changed something, in order and one at
// a time, from the goroutine that applies; f must call no method of the store
// but Snapshot. It returns the snapshot that the first call's Old will be, and what ends it.
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

// Apply takes the changes over, publishes the next snapshot and calls the
// followers.
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

// earliest is when the first of some changes was learned of.
func earliest(changes []Change) (t time.Time) {
	for _, c := range changes {
		if t.IsZero() || !c.Since.IsZero() && c.Since.Before(t) {
			t = c.Since
		}
	}
	return t
}

// claim notes what a source says of its objects.
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

// touch notes a key, or for a port the Pod that it is put into; with a Pod its
// twins.
func (s *Store) touch(touched map[cluster.Key]bool, k cluster.Key) {
	if k.Kind == KindPodPort {
		k = podOf(k)
	}
	touched[k] = true
	for _, twin := range s.twins[k] {
		touched[twin] = true
	}
}

// set puts a source's object for a key in place of its former one.
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

// mark puts a key into a set or takes it out.
func mark(set map[cluster.Key]bool, k cluster.Key, in bool) {
	if in {
		set[k] = true
	} else {
		delete(set, k)
	}
}

// wanted is the object that a key should have: its first claim. If that is refused, or is
// a tier that is held, it is the object that the key has. A default tier is there when
// nobody claims it.
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

// step makes and publishes the snapshot in which the touched keys have what
// they should.
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

// building is a snapshot in the making: maps are shared with the old one until
// they are written.
type building struct {
	old, next *cluster.Cluster
	owned     map[cluster.Kind]bool
	changed   []cluster.Key
}

func newBuilding(old *cluster.Cluster) *building {
	next := *old
	return &building{old: old, next: &next, owned: map[cluster.Kind]bool{}}
}

// put gives a key its object, or none.
func (b *building) put(k cluster.Key, obj cluster.Object) {
	set := b.next.Set(k.Kind)
	if set == nil { // in no snapshot
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

// mapOf names the kind for which a snapshot's map is kept, where two share one.
func mapOf(k cluster.Kind) cluster.Kind {
	switch k {
	case cluster.KindAntreaNetworkPolicy:
		return cluster.KindClusterNetworkPolicy
	case cluster.KindGroup:
		return cluster.KindClusterGroup
	}
	return k
}

// index renews the index of EndpointSlices by Service.
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

// SameObject reports whether two objects differ in nothing but where they
// stand.
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

// Problems are the objects that the store holds but does not show: those that another
// source has already, and those that it refuses (store_refuse.go). Deleted tiers that stay
// are among them. They are in order of their keys. A file's reader tells why a file could
// not be read.
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
