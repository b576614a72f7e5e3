#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>
#include <tessera/operation/layer/class_options.hpp>

#include <cctype>
#include <string_view>

namespace tessera::testing {

using namespace engine;

namespace {

// Whether a sentence has a word, whole.
bool says(std::string_view sentence, std::string_view word) {
  const auto in_a_word = [&](std::size_t i) {
    return i < sentence.size() && (std::isalnum(sentence[i]) != 0 || sentence[i] == '_');
  };
  for (auto at = sentence.find(word); at != sentence.npos; at = sentence.find(word, at + 1))
    if (!in_a_word(at - 1) && !in_a_word(at + word.size())) return true;
  return false;
}

// A layer with one option more takes it just where its list has it.
template <class Layer>
void takes_just(std::string_view list, std::string_view option) {
  INFO(Layer::name << ", " << option);
  CHECK(!Layer::plan(value_of<image>).why.is(code::option_not_taken) == says(list, option));
}
template <class Option>
void layers_take(std::string_view option) {
  takes_just<nn::linear<4, Option>>("cut_out cut_in output_as no_bias weights_as", option);
  takes_just<nn::experts<3, 4, Option>>("cut_out cut_in output_as no_bias weights_as", option);
  takes_just<nn::gated_experts<3, 4, Option>>("cut_out no_bias weights_as", option);
  takes_just<nn::conv_transpose<4, Option>>(
      "kernel stride padding padding_at output_padding output_size dilation groups cut_out cut_in output_as no_bias "
      "weights_as",
      option);
  takes_just<nn::conv<4, Option>>(
      "kernel stride padding padding_at padding_same padding_valid padding_mode dilation groups cut_out cut_in "
      "output_as no_bias weights_as",
      option);
  takes_just<nn::max_pool<Option>>("kernel stride padding padding_at dilation ceil_mode", option);
  takes_just<nn::avg_pool<Option>>("kernel stride padding padding_at dilation ceil_mode exclude_padding divisor",
                                   option);
  takes_just<nn::upsample<Option>>("factor size divisor mode align_corners antialias", option);
  takes_just<nn::batch_norm<Option>>("eps momentum cumulative affine no_affine tracking no_tracking", option);
  takes_just<nn::layer_norm<Option>>("over_last eps affine no_affine no_bias", option);
  takes_just<nn::rms_norm<Option>>("over_last eps affine no_affine", option);
  takes_just<nn::group_norm<3, Option>>("eps affine no_affine", option);
  takes_just<nn::instance_norm<Option>>("eps momentum cumulative affine no_affine tracking no_tracking", option);
  takes_just<nn::dropout<Option>>("probability channelwise alpha", option);
  takes_just<nn::prelu<Option>>("channelwise", option);
  takes_just<nn::rrelu<Option>>("lower upper", option);
  takes_just<nn::pad<padding_at<1, 1>, Option>>("padding_mode", option);
  takes_just<nn::embedding<4, 4, Option>>(
      "cut_out cut_in output_as weights_as padding_idx max_norm norm_type scale_grad_by_freq frozen sparse", option);
}

}  // namespace

TEST_CASE("a layer takes the options that the docs list, and no others", "[plan][refusal]") {
  layers_take<kernel<3, 3>>("kernel");
  layers_take<sample_rate<1, 2>>("sample_rate");
  layers_take<arcface<>>("arcface");
  layers_take<stride<1>>("stride");
  layers_take<padding<1>>("padding");
  layers_take<padding_at<1, 1, 1, 1>>("padding_at");
  layers_take<padding_same>("padding_same");
  layers_take<padding_valid>("padding_valid");
  layers_take<output_padding<1>>("output_padding");
  layers_take<output_size<9>>("output_size");
  layers_take<padding_mode<boundary::reflect>>("padding_mode");
  layers_take<dilation<1>>("dilation");
  layers_take<groups<1>>("groups");
  layers_take<ceil_mode>("ceil_mode");
  layers_take<exclude_padding>("exclude_padding");
  layers_take<divisor<2>>("divisor");
  layers_take<no_bias>("no_bias");
  layers_take<cut_out<row>>("cut_out");
  layers_take<cut_in<row>>("cut_in");
  layers_take<output_as<partition<grid, whole, whole, whole, whole>>>("output_as");
  layers_take<factor<2, 2>>("factor");
  layers_take<size<2, 2>>("size");
  layers_take<mode<interpolation::cubic>>("mode");
  layers_take<align_corners>("align_corners");
  layers_take<antialias>("antialias");
  layers_take<eps<1, 10>>("eps");
  layers_take<momentum<1, 2>>("momentum");
  layers_take<cumulative>("cumulative");
  layers_take<affine>("affine");
  layers_take<no_affine>("no_affine");
  layers_take<tracking>("tracking");
  layers_take<no_tracking>("no_tracking");
  layers_take<over_last<2>>("over_last");
  layers_take<probability<1, 3>>("probability");
  layers_take<channelwise>("channelwise");
  layers_take<weights_as<float>>("weights_as");
  layers_take<padding_idx<0>>("padding_idx");
  layers_take<max_norm<2>>("max_norm");
  layers_take<norm_type<1>>("norm_type");
  layers_take<scale_grad_by_freq>("scale_grad_by_freq");
  layers_take<frozen>("frozen");
  layers_take<sparse>("sparse");
  layers_take<alpha>("alpha");
  layers_take<blocks<row>>("blocks");
  const refusal twice = nn::conv<4, no_bias, kernel<3>, stride<1>, kernel<3>>::plan(value_of<image>).why;
  REQUIRE(twice.is(code::option_given_twice));
  REQUIRE(twice.numbers[0] == 1);
  REQUIRE(twice.numbers[1] == 3);
  CHECK(nn::conv<4, kernel<3, 3>, padding<1>, padding_same>::plan(value_of<image>).why.is(code::option_given_twice));
  CHECK(nn::conv_transpose<4, kernel<3, 3>, output_size<9>, output_padding<0>>::plan(value_of<image>)
            .why.is(code::option_given_twice));
}

}  // namespace tessera::testing
