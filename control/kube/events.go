package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/antrail/antrail/control/manifest"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
)

// A refused object gets an Event, so that its author sees why it has no effect. All Nodes refuse
// the same objects for the same reasons. The Event's name follows from object and reason, so the
// first Node makes it and the others find it. The rate is bounded. If too many Events wait, the
// rest is only in the log.

// refusedEvent is the Event about a refused object.
type refusedEvent struct {
	about  corev1.ObjectReference
	reason string
}

const (
	maxWaiting  = 100 // waiting Events
	eventRate   = 1   // a second
	eventBurst  = 20
	maxMessage  = 1000 // bytes; the API server accepts 1024
	refusedWord = "Refused"
	component   = "antrail"
)

// refusedEvent makes the Event about an object that arrived and was refused.
func (w *watch) refusedEvent(a *arrived) refusedEvent {
	e := refusedEvent{about: corev1.ObjectReference{
		APIVersion: w.gvk.GroupVersion().String(), Kind: w.gvk.Kind, Namespace: a.Namespace, Name: a.Name, UID: a.UID,
		ResourceVersion: a.ResourceVersion,
	}}
	if len(a.problems) > 0 {
		e.reason = message(a.problems[0])
	}
	return e
}

// contradictions queues Events about objects that are refused because of others, such as a
// policy of a missing tier.
func (s *Source) contradictions(news []manifest.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range news {
		for _, w := range s.watches {
			h, had := w.held[p.Key]
			if !had || h.uid == "" || w.refused[p.Key] != nil {
				continue
			}
			about := metav1.ObjectMeta{Namespace: p.Key.Namespace, Name: p.Key.Name, UID: h.uid, ResourceVersion: h.version}
			s.queueEvent(w.refusedEvent(&arrived{ObjectMeta: about, problems: []manifest.Problem{p}}))
		}
	}
}

// message is a problem without the object's name.
func message(p manifest.Problem) string {
	text := p.Reason
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	return text[:min(len(text), maxMessage)]
}

// name is unique to an object and a reason.
func (e *refusedEvent) name() string {
	sum := sha256.Sum256([]byte(string(e.about.UID) + "\n" + e.reason))
	return fmt.Sprintf("%s.%x", e.about.Name[:min(len(e.about.Name), 200)], sum[:8])
}

// event is the Event in the form of the API.
func (e *refusedEvent) event(now time.Time) *corev1.Event {
	at := metav1.NewTime(now)
	namespace := cmp.Or(e.about.Namespace, metav1.NamespaceDefault)
	return &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: e.name()},
		InvolvedObject: e.about, Type: corev1.EventTypeWarning, Reason: refusedWord, Message: e.reason,
		Source: corev1.EventSource{Component: component}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}

// queueEvent queues an Event, if there is room.
func (s *Source) queueEvent(e refusedEvent) {
	select {
	case s.refused <- e:
	default: // the log has it
	}
}

// runEvents makes Events until ctx ends.
func (s *Source) runEvents(ctx context.Context) {
	rate := flowcontrol.NewTokenBucketRateLimiter(eventRate, eventBurst)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-s.refused:
			if rate.Wait(ctx) != nil {
				return
			}
			s.makeEvent(ctx, &e)
		}
	}
}

func (s *Source) makeEvent(ctx context.Context, e *refusedEvent) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ev := e.event(time.Now())
	text, err := json.Marshal(ev)
	if err == nil {
		err = s.api.groups[corev1.SchemeGroupVersion].Post().Namespace(ev.Namespace).Resource("events").
			SetHeader("Content-Type", runtime.ContentTypeJSON).Body(text).Do(ctx).Error()
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.config.Log.Debug("kubernetes: cannot make an Event", "object", e.about.Name, "error", err)
	}
}
