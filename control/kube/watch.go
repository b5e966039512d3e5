package kube

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Watching one resource. client-go's Reflector lists or streams the list, then watches. It resumes
// a lost watch, or lists again if the API server no longer has the version. It waits longer after
// each failure. An inbox receives the objects.

// Waiting between tries: the first wait, and the longest, which grows by up to a half at random.
const (
	firstWait = 500 * time.Millisecond
	longWait  = 15 * time.Second
)

// watch is the watch of one resource. source.mu guards the fields behind source.
type watch struct {
	resource
	source *Source
	held   map[cluster.Key]held
	// refused has the problems of objects whose current state is refused.
	refused map[cluster.Key][]manifest.Problem
	listed  bool   // a first list came
	fault   error  // of the last list or watch; nil: it succeeded
	faults  uint64 // failed lists and watches
	events  uint64 // objects that came one by one
}

func newWatch(s *Source, r resource) *watch {
	return &watch{resource: r, source: s, held: map[cluster.Key]held{}, refused: map[cluster.Key][]manifest.Problem{}}
}

// runWatch watches until ctx ends.
func (w *watch) runWatch(ctx context.Context) {
	runReflector(ctx, &w.resource, w.listWatch(), inbox{w})
}

// runReflector fills a store with the objects of a resource until ctx ends.
func runReflector(ctx context.Context, r *resource, lw *cache.ListWatch, to cache.ReflectorStore) {
	quiet := klog.Logger{} // noteOutcome logs faults
	ctx = klog.NewContext(ctx, quiet)
	cache.NewReflectorWithOptions(lw, r.expected(), to, cache.ReflectorOptions{
		Name: r.name(), Logger: &quiet, Clock: endingClock{ctx: ctx},
		Backoff: &wait.Backoff{
			Duration: firstWait, Cap: longWait, Factor: 2, Jitter: 0.5,
			Steps: int(math.Ceil(math.Log2(float64(longWait / firstWait)))),
		},
	}).RunWithContext(ctx)
}

// expected is an object of the expected type.
func (r *resource) expected() runtime.Object {
	if r.example != nil {
		return r.example
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk)
	return u
}

// listWatch lists and watches the resource, and notes every outcome.
func (w *watch) listWatch() *cache.ListWatch {
	lw := w.source.api.listWatch(&w.resource)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContext(ctx, o)
			w.noteOutcome(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := lw.WatchWithContext(ctx, o)
			if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) { // Invalid: it cannot stream lists, and a plain list follows
				w.noteOutcome(err)
			}
			return events, err
		},
	}
}

// noteOutcome records the outcome of a list or watch. It logs an outcome that differs from the last.
func (w *watch) noteOutcome(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	s := w.source
	s.mu.Lock()
	was := w.fault
	w.fault = err
	if err != nil {
		w.faults++
	}
	s.mu.Unlock()
	switch {
	case err == nil && was != nil:
		s.config.Log.Info("kubernetes: watching again", "resource", w.name())
	case err != nil && (was == nil || was.Error() != err.Error()):
		s.config.Log.Warn("kubernetes: cannot watch; what was read stays, trying again", "resource", w.name(), "error", err)
	}
}

// endingClock is a clock whose waits end with a context.
type endingClock struct {
	clock.RealClock
	ctx context.Context
}

// After is time.After that ends early when the context does.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	c2, cancel := context.WithTimeout(c.ctx, d)
	over := make(chan time.Time, 1)
	context.AfterFunc(c2, func() {
		cancel()
		over <- time.Now()
	})
	return over
}
