package kube

import (
	"fmt"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// The inbox compares the objects of a watch with the former ones: only differences become pending.
// An object is decoded when it arrives, and dropped. Its resourceVersion stays. With it, a second
// list of ten thousand Pods costs ten thousand comparisons.

// held is the last state of an object in a watch.
type held struct {
	version string
	object  cluster.Object // last good state; nil: none
	uid     types.UID      // of Antrea's kinds, which may contradict others
	policy  *heldPolicy    // nil for kinds without this status
}

// heldPolicy has the generation and status of a policy in the API server.
type heldPolicy struct {
	generation int64
	status     policyStatus
}

// arrived is a decoded object that arrived.
type arrived struct {
	metav1.ObjectMeta // name, namespace, resourceVersion and UID
	policy            *heldPolicy
	key               cluster.Key
	object            cluster.Object // nil: refused
	problems          []manifest.Problem
}

// inbox is a watch in the form of the store that a Reflector fills.
type inbox struct{ *watch }

// Add implements cache.ReflectorStore: a new object.
func (in inbox) Add(obj any) error { return in.one(obj, in.put) }

// Update implements cache.ReflectorStore: a changed object.
func (in inbox) Update(obj any) error { return in.one(obj, in.put) }

// Delete implements cache.ReflectorStore: the object is gone, or the watch's selector no longer
// chooses it.
func (in inbox) Delete(obj any) error {
	return in.one(obj, func(a *arrived) { in.remove(a.key) })
}

// Resync implements cache.ReflectorStore. It has nothing to do.
func (in inbox) Resync() error { return nil }

// Transformer decodes the objects of a list one by one, as they stream in.
func (in inbox) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return in.arrive(obj) }
}

// one calls f with one object, under the lock.
func (in inbox) one(obj any, f func(*arrived)) error {
	since := time.Now()
	a, err := in.arrive(obj)
	if err != nil {
		return err
	}
	s := in.source
	s.mu.Lock()
	defer s.mu.Unlock()
	in.events++
	f(a)
	s.ready(since)
	return nil
}

// Replace implements cache.ReflectorStore: a whole list, as one change.
func (in inbox) Replace(list []any, _ string) error {
	since := time.Now()
	all := make([]*arrived, len(list))
	for i, obj := range list {
		var err error
		if all[i], err = in.arrive(obj); err != nil {
			in.noteOutcome(err)
			return err
		}
		list[i] = nil
	}
	s := in.source
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[cluster.Key]bool, len(all))
	for _, a := range all {
		there[a.key] = true
		in.put(a)
	}
	for k := range in.held {
		if !there[k] {
			in.remove(k)
		}
	}
	in.listed = true
	s.ready(since)
	return nil
}

// put records an object. A refused object keeps its last good state.
func (in inbox) put(a *arrived) {
	was, had := in.held[a.key]
	if had && was.version == a.ResourceVersion {
		return
	}
	now := held{version: a.ResourceVersion, object: a.object, policy: a.policy}
	if now.policy != nil {
		in.source.policyTurn++
	}
	if in.example == nil {
		now.uid = a.UID
	}
	delete(in.refused, a.key)
	if a.object == nil {
		now.object = was.object
		in.refused[a.key] = refusal(a.problems, was.object)
		in.source.queueEvent(in.refusedEvent(a))
	}
	if now.object != nil && was.object != nil && store.SameObject(was.object, now.object) {
		now.object = was.object
	}
	in.held[a.key] = now
	if now.object != was.object && now.object != nil {
		in.source.pending.put(a.key, now.object)
	}
}

// refusal adds to the problems whether an earlier state stays.
func refusal(problems []manifest.Problem, good cluster.Object) []manifest.Problem {
	if good != nil {
		for i := range problems {
			problems[i].Reason += manifest.LastGoodStays
		}
	}
	return problems
}

// remove records that the watch no longer has an object. Another watch of the kind may have it,
// when a Pod moves between the two.
func (in inbox) remove(k cluster.Key) {
	if _, had := in.held[k]; !had {
		return
	}
	delete(in.held, k)
	delete(in.refused, k)
	if in.unenforced {
		return // the store never has such objects
	}
	if summedKind(in.kind) {
		in.source.policyTurn++
	}
	for _, w := range in.source.watches {
		if w.kind == in.kind && w.held[k].object != nil {
			in.source.pending.put(k, w.held[k].object)
			return
		}
	}
	in.source.pending.remove(k)
}

// arrive decodes an object.
func (in inbox) arrive(obj any) (*arrived, error) {
	if a, done := obj.(*arrived); done {
		return a, nil
	}
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	p := manifest.Published{APIVersion: in.gvk.GroupVersion().String(), Kind: in.gvk.Kind, Object: m}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if p.JSON, err = u.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	a := &arrived{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.GetNamespace(), Name: m.GetName(), ResourceVersion: m.GetResourceVersion(), UID: m.GetUID(),
	}}
	if u, ok := obj.(*unstructured.Unstructured); ok && summedKind(in.kind) {
		a.policy = &heldPolicy{u.GetGeneration(), readStatus(u.Object)}
	}
	var known bool
	if a.key, known = p.Key(); !known {
		return nil, fmt.Errorf("%s: not a kind that is used", in.name())
	}
	a.object, a.problems = p.Decode(SourceName)
	return a, nil
}
