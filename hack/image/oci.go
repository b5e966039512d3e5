package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/antrail/antrail/hack/filetree"
)

// Types of the OCI image-spec (media-types.md).
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor points to a blob (descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blobs are the contents of an image, by path in the archive.
type blobs map[string][]byte

func (b blobs) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	b["blobs/sha256/"+sum] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (b blobs) addJSON(mediaType string, v any) descriptor { return b.add(mediaType, asJSON(v)) }

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps, slices and strings only
	}
	return text
}

// archive is the image with its one layer.
func (o *order) archive(files filetree.Tree) ([]byte, error) {
	content, err := files.Tar()
	if err != nil {
		return nil, err
	}
	packed, err := pack(content)
	if err != nil {
		return nil, err
	}
	all := blobs{}
	layer := all.add(layerType, packed)
	config := all.addJSON(configType, o.config(content))
	manifest := all.addJSON(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layer},
	})
	var named []descriptor
	for _, name := range o.names {
		d := manifest
		_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
		d.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
		named = append(named, d)
	}
	all["oci-layout"] = asJSON(map[string]string{"imageLayoutVersion": "1.0.0"})
	all["index.json"] = asJSON(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": named})
	all["manifest.json"] = asJSON([]any{map[string]any{
		"Config": blobPath(config), "RepoTags": o.names, "Layers": []string{blobPath(layer)},
	}})
	return all.tar()
}

func blobPath(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// config is how the image runs (config.md).
func (o *order) config(layer []byte) any {
	run := map[string]any{"Env": []string(o.env)}
	if o.entrypoint != "" {
		run["Entrypoint"] = strings.Split(o.entrypoint, ",")
	}
	return map[string]any{
		"architecture": o.arch, "os": "linux", "config": run,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	}
}

// pack compresses, without a time.
func pack(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// tar writes the archive itself, which has the form of a layer.
func (b blobs) tar() ([]byte, error) {
	all := filetree.Tree{}
	for name, content := range b {
		all[name] = filetree.Entry{Content: content}
	}
	return all.Tar()
}
