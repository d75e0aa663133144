// Package plugin is an embedder: it computes vectors of texts, so that other plugins can compare and search them.
//
// This one counts words and needs no model. To use a real one, replace `words.Vector`.
package plugin

import (
	"fmt"

	embedder "hermes/bindings/imports/hermes_embeddings_embedder"
	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/sdk"
	"hermes/sdk/wit/types"
	"hermes/words"
)

var dimensions uint32 = 256

// Configure reads the configuration. Keys and defaults must match plugin.yaml.
func Configure(config string) sdk.Result[types.Unit] {
	given := struct {
		Dimensions uint32 `json:"dimensions"`
	}{256}
	if err := sdk.Decode(config, &given); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	if given.Dimensions < 16 || given.Dimensions > 4096 {
		return sdk.Fail[types.Unit](sdk.Invalid("dimensions must lie between 16 and 4096"))
	}
	dimensions = given.Dimensions
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

// Describe names the model. Plugins store this name beside each vector: change it whenever the vectors change.
func Describe() sdk.Result[embedder.Description] {
	return sdk.Ok(embedder.Description{Model: fmt.Sprintf("{{name}}-1-%d", dimensions), Dimensions: dimensions})
}

// Embed makes a vector for each text. `request.Purpose` says whether the texts search or are searched. Word counts are the same for both.
func Embed(request embedder.Request) sdk.Result[[][]float32] {
	vectors := make([][]float32, 0, len(request.Texts))
	for _, text := range request.Texts {
		vectors = append(vectors, words.Vector(text, dimensions))
	}
	return sdk.Ok(vectors)
}
