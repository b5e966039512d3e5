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

// What a watch says, against what it said before: only differences become
// pending. An object is decoded when it arrives and dropped; of what the API
// server said, its resourceVersion stays, by which a second list of ten thousand
// Pods is ten thousand comparisons.

// held is what a watch said last of an object.
type held struct {
	version string
	object  cluster.Object // last good; nil: never
	uid     types.UID      // of Antrea's kinds, which may contradict others
	policy  *heldPolicy    // of kinds with such a status; nil for others
}

// heldPolicy is what the API server says of a policy besides.
type heldPolicy struct {
	generation int64
	status     policyStatus
}

// arrived is an object that came, decoded.
type arrived struct {
	metav1.ObjectMeta // name, namespace, resourceVersion and UID
	policy            *heldPolicy
	key               cluster.Key
	object            cluster.Object // nil: refused
	problems          []manifest.Problem
}

// inbox is a watch as the store that a Reflector fills.
type inbox struct{ *watch }

// Add takes a new object.
func (in inbox) Add(obj any) error { return in.one(obj, in.put) }

// Update takes a changed object.
func (in inbox) Update(obj any) error { return in.one(obj, in.put) }

// Delete takes an object that is gone, or that the watch's selector does not
// choose any more.
func (in inbox) Delete(obj any) error {
	return in.one(obj, func(a *arrived) { in.remove(a.key) })
}

// Resync is for stores that forget.
func (in inbox) Resync() error { return nil }

// Transformer decodes what a list streams, object by object.
func (in inbox) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return in.arrive(obj) }
}

// one takes one object to f, under the lock.
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

// Replace takes the whole of a list. It is one change.
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

// put notes an object. One that is refused stays as it was when it was last good.
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

// refusal says of a refused object whether an earlier state stays.
func refusal(problems []manifest.Problem, good cluster.Object) []manifest.Problem {
	if good != nil {
		for i := range problems {
			problems[i].Reason += manifest.LastGoodStays
		}
	}
	return problems
}

// remove notes that the watch has no such object any more. Another watch of the
// kind may: a Pod came from elsewhere.
func (in inbox) remove(k cluster.Key) {
	if _, had := in.held[k]; !had {
		return
	}
	delete(in.held, k)
	delete(in.refused, k)
	if in.unenforced {
		return // the store never had it
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
