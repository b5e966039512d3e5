package manifest

import (
	"fmt"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrail/antrail/control/cluster"
)

// The same door for objects that an API server gives, one by one: as the
// published Go type, or as JSON where there is none (Antrea's). They go through
// the readers and checks of manifests; what is refused is told with the field
// and without a line.

// Published is an object as an API server gives it.
type Published struct {
	APIVersion, Kind string
	// Object is of the published type, as *corev1.Pod for v1 Pod. Where JSON is
	// given, only its namespace and name are read.
	Object metav1.Object
	JSON   []byte
}

// Key is the object's key here; false for a kind that may be ignored.
func (p *Published) Key() (cluster.Key, bool) {
	r, ok := readers[typeName{p.APIVersion, p.Kind}]
	if !ok && unenforced(p.APIVersion, p.Kind) != "" {
		return cluster.Key{Kind: unenforcedKind(p.APIVersion, p.Kind), Namespace: clipName(p.Object.GetNamespace()), Name: clipName(p.Object.GetName())}, true
	}
	if !ok {
		return cluster.Key{}, false
	}
	k := cluster.Key{Kind: r.kind, Name: clipName(p.Object.GetName())}
	if r.namespaced {
		k.Namespace = clipName(p.Object.GetNamespace())
	}
	return k, true
}

// Decode checks the object and makes it one of ours; source is what Source.File
// is to say. An object with problems is refused whole.
func (p *Published) Decode(source string) (cluster.Object, []Problem) {
	c := &check{file: source, node: &yaml.Node{}, lines: lineMap{{}}}
	key, ok := p.Key()
	if !ok {
		return nil, []Problem{c.problem(0, "", fmt.Sprintf("kind %s of %s is not used here", Clip(p.Kind), Clip(p.APIVersion)))}
	}
	c.meta = cluster.Meta{Key: key, Source: cluster.Source{File: source}}
	if _, read := readers[typeName{p.APIVersion, p.Kind}]; !read {
		return nil, []Problem{c.problem(0, "", unenforced(p.APIVersion, p.Kind))}
	}
	obj := p.read(c)
	c.settle()
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return obj, nil
}

func (p *Published) read(c *check) cluster.Object {
	r := readers[typeName{p.APIVersion, p.Kind}]
	if p.JSON == nil {
		obj, ok := r.take(c, p.Object)
		if !ok {
			c.problems = append(c.problems, c.problem(0, "", fmt.Sprintf("a %T is no %s", p.Object, p.Kind)))
		}
		return obj
	}
	if len(p.JSON) > maxObject {
		c.problems = append(c.problems, c.problem(0, "", fmt.Sprintf("the object is larger than %d bytes", maxObject)))
		return nil
	}
	return r.build(c, p.JSON)
}
