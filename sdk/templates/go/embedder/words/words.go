// Package words has vectors from counted words. `go test ./...` runs it natively.
package words

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Letters of a part of a word, and what a part counts. Words with a common part are a little similar: `ferry` and `ferries`.
const (
	part       = 4
	partWeight = 0.3
)

// Vector has the length 1. Each word and each beginning of a word adds to one of its numbers.
func Vector(text string, dimensions uint32) []float32 {
	numbers := make([]float64, dimensions)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(letter rune) bool {
		return !unicode.IsLetter(letter) && !unicode.IsDigit(letter)
	}) {
		numbers[place(word, dimensions)]++
		if letters := []rune(word); len(letters) > part {
			numbers[place(string(letters[:part]), dimensions)] += partWeight
		}
	}
	var squares float64
	for _, number := range numbers {
		squares += number * number
	}
	vector := make([]float32, dimensions)
	if squares == 0 {
		// A text without words: plugins that divide by the length must not divide by 0.
		vector[0] = 1
		return vector
	}
	for at, number := range numbers {
		vector[at] = float32(number / math.Sqrt(squares))
	}
	return vector
}

// place is the same number on every machine and in every run, unlike the hash of a map.
func place(word string, dimensions uint32) uint32 {
	hash := fnv.New32a()
	hash.Write([]byte(word))
	return hash.Sum32() % dimensions
}
